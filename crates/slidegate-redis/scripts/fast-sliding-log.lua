-- sliding-log, the fast path: see fast-begin.lua. Also written in sliding-log.lua,
-- crates/slidegate/src/algorithm/sliding_log.rs and testing/model/sliding_log.rs; change all four.
local SIGNATURE = 0x5347010101 -- "SG", version 1, one limit, algorithm 1
local BODY_BYTES = 27
local stored_units, base, last, count, bytes, newest, entries, tick, total
-- general only
-- A long log is handled if few entries have left since the last charge and the oldest live one makes enough room.
local RING_START = 76 -- BODY_START + LONG_BODY_BYTES: bytes before the ring of a long value
local UNCHANGED_TEXT = '24' -- UNCHANGED_BYTES as SETRANGE takes it
local GONE_MAX = 16 -- entries of a ring that are read to find the first live one
local first, capacity, oldest_tick, oldest_total
-- general only ends
if size == 0 then
  generation, base, last, count, newest = ARGV[2] + 0, 0, 0, 0, 0
  if units < RANGE_2 then bytes = 2 elseif units < RANGE_4 then bytes = 4 else bytes = 7 end
elseif size >= BODY_START + BODY_BYTES then
  local signature, stored_window_us, stored_generation, length, s, us
  signature, stored_window_us, stored_units, stored_generation, length, s, us, base, last, count, bytes, entries =
    unpack('>I5xxI6I5I6I4I5I3I7I7I4B', value)
  newest = s * SECOND_US + us
  if stored_units == units then head = sub(value, 1, UNCHANGED_BYTES) end
  if signature == SIGNATURE and stored_window_us == window_us then
    if length == BODY_BYTES + count * (TICK_BYTES + bytes) and size == BODY_START + length then
      generation = stored_generation
    end
    -- general only
    if bytes >= LONG_FLAG and length == LONG_BODY_BYTES and size >= RING_START and count > 0 then
      generation, bytes = stored_generation, bytes - LONG_FLAG
      first, capacity, oldest_tick, oldest_total = unpack('>I4I4I6I7', value, entries)
    end
    -- general only ends
  end
end
if generation then
  local format, modulus, entry_bytes = '>I6I7', RANGE_7, TICK_BYTES + bytes
  if bytes == 2 then format, modulus = '>I6I2', RANGE_2 elseif bytes == 4 then format, modulus = '>I6I4', RANGE_4 end
  local live, before, cut_us, newest_tick = 0, base, window_us, newest % CYCLE_US
  if now_us > newest then cut_us = window_us - (now_us - newest) end
  if count == 0 then
    before = last
  elseif cut_us <= 0 then
    live, before = count, last
  else
    tick, total = unpack(format, value, entries)
    -- general only
    if capacity then tick, total = oldest_tick, oldest_total end
    -- general only ends
    if (newest_tick - tick) % CYCLE_US >= cut_us then
      -- The search ends, because the newest entry is live.
      local from, offset, until_entry = value, entries, count
      -- general only
      if capacity then
        -- Read the next few entries of the ring, up to its end.
        until_entry = capacity - first
        if until_entry > GONE_MAX then until_entry = GONE_MAX end
        from, offset = call('GETRANGE', key, string.format('%d', RING_START + first * entry_bytes),
          string.format('%d', RING_START - 1 + (first + until_entry) * entry_bytes)), 1
        if until_entry > count then until_entry = count end
      end
      -- general only ends
      repeat
        live, before = live + 1, total
        if live < until_entry then tick, total = unpack(format, from, offset + live * entry_bytes) end
      until live == until_entry or (newest_tick - tick) % CYCLE_US < cut_us
      if live == until_entry then generation = nil end
    end
  end
  local used_before = (last - before) % modulus
  local missing = used_before + cost - units
  if not generation or used_before + cost >= modulus then
    -- Left to the general part.
  elseif missing > 0 then
    if (total - before) % modulus < missing then
      local low, high = live, count - 1
      -- general only
      if capacity then generation, low, high = nil, 0, 0 end
      -- general only ends
      while high - low > 1 do
        local middle = floor((low + high) / 2)
        local _, reached = unpack(format, value, entries + middle * entry_bytes)
        if (reached - before) % modulus >= missing then high = middle else low = middle end
      end
      tick = unpack(format, value, entries + high * entry_bytes)
    end
    if generation then
      retry_after_us = newest - (newest_tick - tick) % CYCLE_US + window_us - now_us
      used, reset_after_us = used_before, newest + window_us - now_us
    end
  elseif not charging then
    used = used_before
    if used_before > 0 then reset_after_us = newest + window_us - now_us end
  else
    local stamp, kept = newest, count
    if now_us > stamp then stamp = now_us elseif count > live then kept = count - 1 end
    place_s = floor(stamp / SECOND_US)
    place_us = stamp - place_s * SECOND_US
    local stamp_tick = stamp % CYCLE_US
    local entry_total = (last + cost) % modulus
    local remaining = kept - live + 1
    local length = BODY_BYTES + remaining * entry_bytes
    head = head or pack(HEAD_FORMAT, SIGNATURE, 0, window_us, units, generation)
    -- general only
    if capacity then length = NEAR_BYTES end
    if capacity and remaining <= capacity and (capacity <= RING_SHRINK_MIN or remaining * RING_SPARSE >= capacity) then
      first = (first + live) % capacity
      if remaining == 1 then tick, total = stamp_tick, entry_total end
      used, reset_after_us = used_before + cost, stamp + window_us - now_us
      local body = pack('>I4I5I3I7I7I4BI4I4I6I7', LONG_BODY_BYTES, place_s, place_us, before, entry_total, remaining,
        bytes + LONG_FLAG, first, capacity, tick, total)
      local slot = RING_START + (first + remaining - 1) % capacity * entry_bytes
      call('SETRANGE', key, string.format('%d', slot), pack(format, stamp_tick, entry_total))
      if stored_units == units then
        call('SETRANGE', key, UNCHANGED_TEXT, body)
      else
        call('SETRANGE', key, '0', head .. body)
      end
    end
    -- general only ends
    if length <= NEAR_BYTES - BODY_START then
      local body = pack('>I4I5I3I7I7I4B', length, place_s, place_us, before, entry_total, remaining, bytes)
      if kept > live then
        text = head .. body .. sub(value, entries + live * entry_bytes, entries + kept * entry_bytes - 1)
          .. pack(format, stamp_tick, entry_total)
      else
        text = head .. body .. pack(format, stamp_tick, entry_total)
      end
      used, reset_after_us = used_before + cost, stamp + window_us - now_us
    end
  end
end
