-- compact-log, the common case: see fast.lua and compact-log.lua. A charge that finds the log full is not common.
local sum, count, bytes, newest, credited_s, credited_us, entries
parameter = parameter + 0
if size == 0 then
  generation, sum, count, newest, credited_s, credited_us = ARGV[2] + 0, 0, 0, 0, 0, 0
  if units < 32768 then bytes = 2 elseif units < 2147483648 then bytes = 4 else bytes = 7 end
elseif size >= 54 then
  local signature, kept_parameter, kept, kept_units, drawn, length, s, us
  signature, kept_parameter, kept, kept_units, drawn, length, s, us, credited_s, credited_us, sum, count, bytes, entries =
    unpack('>I5I2I6I5I6I4I5I3I5I3I7I2B', value)
  newest = s * 1e6 + us
  if kept_units == units and kept_parameter == parameter then head = sub(value, 1, 24) end
  if signature == 357673533698 and kept == window and length == 26 + count * (6 + bytes) and size == 28 + length then
    generation = drawn
  end
end
if generation then
  local format, marks_max, each = '>I6I7', 4503599627370496, 6 + bytes
  if bytes == 2 then format, marks_max = '>I6I2', 65536 elseif bytes == 4 then format, marks_max = '>I6I4', 4294967296 end
  local live, gone, cut, newest_tick = 0, 0, window, newest % 268435456e6
  local tick, marked
  if now > newest then cut = window - (now - newest) end
  if cut <= 0 then
    live, gone = count, sum
  else
    while live < count do
      tick, marked = unpack(format, value, entries + live * each)
      if (newest_tick - tick) % 268435456e6 < cut then break end
      live, gone = live + 1, gone + floor(marked / 2)
    end
  end
  local held = sum - gone
  local missing = held + cost - units
  if missing > 0 or not charges then
    if missing > 0 then
      local index = live
      missing = missing - floor(marked / 2)
      while missing > 0 do
        index = index + 1
        tick, marked = unpack(format, value, entries + index * each)
        missing = missing - floor(marked / 2)
      end
      retry = newest - (newest_tick - tick) % 268435456e6 + window - now
    end
    if live < count then
      tick = unpack(format, value, entries + (count - 1) * each)
      reset = newest - (newest_tick - tick) % 268435456e6 + window - now
    end
    used = held
  elseif 2 * (held + cost) + 1 < marks_max then
    local stamp, kept, own = newest, count, 2 * cost
    if now > stamp then
      stamp = now
    elseif count > live then
      tick, marked = unpack(format, value, entries + (count - 1) * each)
      if tick == newest_tick then kept, own = count - 1, marked + own end
    end
    if kept < count or count - live < parameter then
      local remaining = kept - live + 1
      place_s = floor(stamp / 1e6)
      place_us = stamp - place_s * 1e6
      used, reset = held + cost, stamp + window - now
      head = head or pack('>I5I2I6I5I6', 357673533698, parameter, window, units, generation)
      local body = pack('>I4I5I3I5I3I7I2B', 26 + remaining * each, place_s, place_us, credited_s, credited_us, used,
        remaining, bytes)
      if kept > live then
        text = head .. body .. sub(value, entries + live * each, entries + kept * each - 1)
          .. pack(format, stamp % 268435456e6, own)
      else
        text = head .. body .. pack(format, stamp % 268435456e6, own)
      end
    end
  end
end
