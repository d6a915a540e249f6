-- gcra, the fast path: see fast-begin.lua. Also written in gcra.lua, crates/slidegate/src/algorithm/gcra.rs and
-- testing/model/gcra.rs; change all four.
local SIGNATURE = 0x5347010106 -- "SG", version 1, one limit, algorithm 6
local BODY_BYTES = 27
local HIGH_EXACT_SUM = 16 -- 2^52 / 2^48: below, the backlog is exact as one double, also with a charge added
local as_of_us, backlog, given_back
if units * window_us >= PRODUCT_MAX then
  -- Left to the general part.
elseif size == 0 then
  generation, as_of_us, backlog, given_back = ARGV[2] + 0, 0, 0, 0
elseif size == BODY_START + BODY_BYTES then
  local signature, stored_window_us, drained_per_window, stored_generation, length, s, us, high, low, stored_given =
    unpack('>I5xxI6I5I6I4I5I3I6I6I7', value)
  if signature == SIGNATURE and stored_window_us == window_us and length == BODY_BYTES
    and drained_per_window == units and high < HIGH_EXACT_SUM then
    generation, as_of_us, given_back = stored_generation, s * SECOND_US + us, stored_given
    backlog = high * WIDE_BASE + low
    head = sub(value, 1, UNCHANGED_BYTES)
  end
end
if generation then
  local begins_us = as_of_us - now_us
  if begins_us < 0 then
    backlog = backlog + begins_us * units
    if backlog < 0 then backlog = 0 end
    begins_us, as_of_us = 0, now_us
  end
  local excess = backlog - (units - cost) * window_us
  if excess > 0 then
    retry_after_us = begins_us - floor(-excess / units)
  elseif charging then
    backlog = backlog + cost * window_us
    place_s = floor(as_of_us / SECOND_US)
    place_us = as_of_us - place_s * SECOND_US
    local high = floor(backlog / WIDE_BASE)
    local low = backlog - high * WIDE_BASE
    head = head or pack(HEAD_FORMAT, SIGNATURE, 0, window_us, units, generation)
    text = head .. pack('>I4I5I3I6I6I7', BODY_BYTES, place_s, place_us, high, low, given_back)
    -- The place has the backlog in 16 bytes and the units given back in 8: those of the text, and zeros before them.
    place_rest = '\0\0\0\0' .. sub(text, 37, 48) .. '\0' .. sub(text, 49)
  end
  used = -floor(-backlog / window_us)
  if backlog > 0 then reset_after_us = begins_us - floor(-backlog / units) end
end
