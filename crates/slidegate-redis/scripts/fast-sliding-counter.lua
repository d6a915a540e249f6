-- sliding-counter, the fast path: see fast-begin.lua. Also written in sliding-counter.lua,
-- crates/slidegate/src/algorithm/sliding_counter.rs and testing/model/sliding_counter.rs; change all four.
local SIGNATURE = 0x5347010104 -- "SG", version 1, one limit, algorithm 4
local BODY_BYTES = 22
local start_us, previous, current
if units * window_us >= PRODUCT_MAX then
  -- Left to the general part.
elseif size == 0 then
  generation, start_us, previous, current = ARGV[2] + 0, 0, 0, 0
elseif size == BODY_START + BODY_BYTES then
  local signature, stored_window_us, stored_units, stored_generation, length, s, us, stored_previous, stored_current =
    unpack('>I5xxI6I5I6I4I5I3I7I7', value)
  if signature == SIGNATURE and stored_window_us == window_us and length == BODY_BYTES
    and stored_previous * window_us < PRODUCT_MAX then
    generation, start_us, previous, current = stored_generation, s * SECOND_US + us, stored_previous, stored_current
    if stored_units == units then head = sub(value, 1, UNCHANGED_BYTES) end
  end
end
if generation then
  local current_us = now_us - now_us % window_us
  if current_us > start_us then
    if current_us - start_us == window_us then previous = current else previous = 0 end
    start_us, current = current_us, 0
  end
  local overlap_us = window_us
  if now_us > start_us then overlap_us = window_us - (now_us - start_us) end
  local room = units - current - cost
  if room < 0 then
    retry_after_us = start_us + 2 * window_us - floor((units - cost) * window_us / current) - now_us
  elseif previous * overlap_us > room * window_us then
    retry_after_us = start_us + window_us - floor(room * window_us / previous) - now_us
  elseif charging then
    current = current + cost
    place_s = floor(start_us / SECOND_US)
    place_us = start_us - place_s * SECOND_US
    head = head or pack(HEAD_FORMAT, SIGNATURE, 0, window_us, units, generation)
    text = head .. pack('>I4I5I3I7I7', BODY_BYTES, place_s, place_us, previous, current)
  end
  used = current - floor(-previous * overlap_us / window_us)
  if current > 0 then
    reset_after_us = start_us + 2 * window_us - now_us
  elseif previous > 0 then
    reset_after_us = start_us + window_us - now_us
  end
end
