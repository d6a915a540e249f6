-- fixed-window, the fast path: see fast-begin.lua. Also written in fixed-window.lua,
-- crates/slidegate/src/algorithm/fixed_window.rs and testing/model/fixed_window.rs; change all four.
local SIGNATURE = 0x5347010105 -- "SG", version 1, one limit, algorithm 5
local BODY_BYTES = 15
local start_us, count
if size == 0 then
  generation, start_us, count = ARGV[2] + 0, 0, 0
elseif size == BODY_START + BODY_BYTES then
  local signature, stored_window_us, stored_units, stored_generation, length, s, us, stored_count =
    unpack('>I5xxI6I5I6I4I5I3I7', value)
  if signature == SIGNATURE and stored_window_us == window_us and length == BODY_BYTES then
    generation, start_us, count = stored_generation, s * SECOND_US + us, stored_count
    if stored_units == units then head = sub(value, 1, UNCHANGED_BYTES) end
  end
end
if generation then
  local current_us = now_us - now_us % window_us
  if current_us > start_us then start_us, count = current_us, 0 end
  if count + cost > units then
    retry_after_us = start_us + window_us - now_us
  elseif charging then
    count = count + cost
    place_s = floor(start_us / SECOND_US)
    place_us = start_us - place_s * SECOND_US
    head = head or pack(HEAD_FORMAT, SIGNATURE, 0, window_us, units, generation)
    text = head .. pack('>I4I5I3I7', BODY_BYTES, place_s, place_us, count)
  end
  used = count
  if count > 0 then reset_after_us = start_us + window_us - now_us end
end
