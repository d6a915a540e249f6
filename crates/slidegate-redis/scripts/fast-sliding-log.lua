-- sliding-log, the common case: see fast.lua and sliding-log.lua. A long log is common where at most a few entries have
-- left since the last charge, and where the oldest live one makes enough room.
local kept_units, base, last, count, bytes, newest, entries
local first, capacity, tick, total
if size == 0 then
  generation, base, last, count, newest = ARGV[2] + 0, 0, 0, 0, 0
  if units < 65536 then bytes = 2 elseif units < 4294967296 then bytes = 4 else bytes = 7 end
elseif size >= 55 then
  local signature, kept, drawn, length, s, us
  signature, kept, kept_units, drawn, length, s, us, base, last, count, bytes, entries =
    unpack('>I5xxI6I5I6I4I5I3I7I7I4B', value)
  newest = s * 1e6 + us
  if kept_units == units then head = sub(value, 1, 24) end
  if signature == 357673533697 and kept == window then
    if bytes < 128 then
      if length == 27 + count * (6 + bytes) and size == 28 + length then generation = drawn end
    elseif length == 48 and size >= 76 and count > 0 then
      generation, bytes = drawn, bytes - 128
      first, capacity, tick, total = unpack('>I4I4I6I7', value, entries)
    end
  end
end
if generation then
  local format, modulus, each = '>I6I7', 4503599627370496, 6 + bytes
  if bytes == 2 then format, modulus = '>I6I2', 65536 elseif bytes == 4 then format, modulus = '>I6I4', 4294967296 end
  local live, before, cut, newest_tick = 0, base, window, newest % 268435456e6
  if now > newest then cut = window - (now - newest) end
  if count == 0 then
    before = last
  elseif cut <= 0 then
    live, before = count, last
  else
    if not capacity then tick, total = unpack(format, value, entries) end
    if (newest_tick - tick) % 268435456e6 >= cut then
      -- The newest entry is live, so that the search ends.
      local from, at, till = value, entries, count
      if capacity then
        -- The next few of a ring, up to its end.
        till = capacity - first
        if till > 16 then till = 16 end
        from, at = call('GETRANGE', key, string.format('%d', 76 + first * each),
          string.format('%d', 75 + (first + till) * each)), 1
        if till > count then till = count end
      end
      repeat
        live, before = live + 1, total
        if live < till then tick, total = unpack(format, from, at + live * each) end
      until live == till or (newest_tick - tick) % 268435456e6 < cut
      if live == till then generation = nil end
    end
  end
  local held = (last - before) % modulus
  local missing = held + cost - units
  if not generation or held + cost >= modulus then
    -- Not common.
  elseif missing > 0 then
    if (total - before) % modulus < missing then
      if capacity then
        generation = nil
      else
        local low, high = live, count - 1
        while high - low > 1 do
          local middle = floor((low + high) / 2)
          local _, reached = unpack(format, value, entries + middle * each)
          if (reached - before) % modulus >= missing then high = middle else low = middle end
        end
        tick = unpack(format, value, entries + high * each)
      end
    end
    if generation then
      retry = newest - (newest_tick - tick) % 268435456e6 + window - now
      used, reset = held, newest + window - now
    end
  elseif not charges then
    used = held
    if held > 0 then reset = newest + window - now end
  else
    local stamp, kept = newest, count
    if now > stamp then stamp = now elseif count > live then kept = count - 1 end
    place_s = floor(stamp / 1e6)
    place_us = stamp - place_s * 1e6
    local stamp_tick = stamp % 268435456e6
    local entry_total = (last + cost) % modulus
    local remaining = kept - live + 1
    head = head or pack('>I5I2I6I5I6', 357673533697, 0, window, units, generation)
    if not capacity then
      local length = 27 + remaining * each
      if length <= 484 then
        local own = pack('>I4I5I3I7I7I4B', length, place_s, place_us, before, entry_total, remaining, bytes)
        if kept > live then
          text = head .. own .. sub(value, entries + live * each, entries + kept * each - 1)
            .. pack(format, stamp_tick, entry_total)
        else
          text = head .. own .. pack(format, stamp_tick, entry_total)
        end
        used, reset = held + cost, stamp + window - now
      end
    elseif remaining <= capacity and (capacity <= 256 or remaining * 8 >= capacity) then
      first = (first + live) % capacity
      if remaining == 1 then tick, total = stamp_tick, entry_total end
      used, reset = held + cost, stamp + window - now
      local own = pack('>I4I5I3I7I7I4BI4I4I6I7', 48, place_s, place_us, before, entry_total, remaining, bytes + 128,
        first, capacity, tick, total)
      local slot = 76 + (first + remaining - 1) % capacity * each
      call('SETRANGE', key, string.format('%d', slot), pack(format, stamp_tick, entry_total))
      if kept_units == units then
        call('SETRANGE', key, '24', own)
      else
        call('SETRANGE', key, '0', head .. own)
      end
    end
  end
end
