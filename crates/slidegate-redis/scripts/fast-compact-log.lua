-- compact-log, the fast path, without charges that find the log full: see fast-begin.lua. Also written in
-- compact-log.lua, crates/slidegate/src/algorithm/compact_log.rs and testing/model/compact_log.rs; change all four.
local SIGNATURE = 0x5347010102 -- "SG", version 1, one limit, algorithm 2
local BODY_BYTES = 26
local sum, count, bytes, newest, credited_s, credited_us, entries
parameter = parameter + 0
if size == 0 then
  generation, sum, count, newest, credited_s, credited_us = ARGV[2] + 0, 0, 0, 0, 0, 0
  if 2 * units + 1 < RANGE_2 then bytes = 2 elseif 2 * units + 1 < RANGE_4 then bytes = 4 else bytes = 7 end
elseif size >= BODY_START + BODY_BYTES then
  local signature, stored_parameter, stored_window_us, stored_units, stored_generation, length, s, us
  signature, stored_parameter, stored_window_us, stored_units, stored_generation, length, s, us, credited_s,
    credited_us, sum, count, bytes, entries = unpack('>I5I2I6I5I6I4I5I3I5I3I7I2B', value)
  newest = s * SECOND_US + us
  if stored_units == units and stored_parameter == parameter then head = sub(value, 1, UNCHANGED_BYTES) end
  if signature == SIGNATURE and stored_window_us == window_us and size == BODY_START + length
    and length == BODY_BYTES + count * (TICK_BYTES + bytes) then
    generation = stored_generation
  end
end
if generation then
  local format, marked_range, entry_bytes = '>I6I7', RANGE_7, TICK_BYTES + bytes
  if bytes == 2 then format, marked_range = '>I6I2', RANGE_2 end
  if bytes == 4 then format, marked_range = '>I6I4', RANGE_4 end
  local live, gone_units, cut_us, newest_tick = 0, 0, window_us, newest % CYCLE_US
  local tick, marked
  if now_us > newest then cut_us = window_us - (now_us - newest) end
  if cut_us <= 0 then
    live, gone_units = count, sum
  else
    while live < count do
      tick, marked = unpack(format, value, entries + live * entry_bytes)
      if (newest_tick - tick) % CYCLE_US < cut_us then break end
      live, gone_units = live + 1, gone_units + floor(marked / 2)
    end
  end
  local used_before = sum - gone_units
  local missing = used_before + cost - units
  if missing > 0 or not charging then
    if missing > 0 then
      local index = live
      missing = missing - floor(marked / 2)
      while missing > 0 do
        index = index + 1
        tick, marked = unpack(format, value, entries + index * entry_bytes)
        missing = missing - floor(marked / 2)
      end
      retry_after_us = newest - (newest_tick - tick) % CYCLE_US + window_us - now_us
    end
    if live < count then
      tick = unpack(format, value, entries + (count - 1) * entry_bytes)
      reset_after_us = newest - (newest_tick - tick) % CYCLE_US + window_us - now_us
    end
    used = used_before
  elseif 2 * (used_before + cost) + 1 < marked_range then
    local stamp, kept, marked_own = newest, count, 2 * cost
    if now_us > stamp then
      stamp = now_us
    elseif count > live then
      tick, marked = unpack(format, value, entries + (count - 1) * entry_bytes)
      if tick == newest_tick then kept, marked_own = count - 1, marked + marked_own end
    end
    if kept < count or count - live < parameter then
      local remaining = kept - live + 1
      place_s = floor(stamp / SECOND_US)
      place_us = stamp - place_s * SECOND_US
      used, reset_after_us = used_before + cost, stamp + window_us - now_us
      head = head or pack(HEAD_FORMAT, SIGNATURE, parameter, window_us, units, generation)
      local body = pack('>I4I5I3I5I3I7I2B', BODY_BYTES + remaining * entry_bytes, place_s, place_us, credited_s,
        credited_us, used, remaining, bytes)
      if kept > live then
        text = head .. body .. sub(value, entries + live * entry_bytes, entries + kept * entry_bytes - 1)
          .. pack(format, stamp % CYCLE_US, marked_own)
      else
        text = head .. body .. pack(format, stamp % CYCLE_US, marked_own)
      end
    end
  end
end
