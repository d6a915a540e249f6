-- sliding-log: every admitted request's time and cost. Also written in fast-sliding-log.lua,
-- crates/slidegate/src/algorithm/sliding_log.rs and testing/model/sliding_log.rs; change all four.
--
-- Body, 27 bytes and the entries: 5 + 3 the newest stamp, 7 the running total before the first entry, 7 the running
-- total, 4 how many entries, 1 bytes of an entry's total (2, 4 or 7), then the entries, oldest first: 6 the stamp, in
-- microseconds modulo 2^28 seconds, then the running total with its units. Totals are modulo 2^16, 2^32 or 2^52: the
-- smallest that is more than the units in the log. Requests of one microsecond share an entry. The newest stamp stays
-- when the last entry has left: time does not run back behind it.
--
-- A value above 512 bytes is long: the entries are not in the body but in a ring buffer after the last limit, of which
-- a charge writes one slot. 128 is added to the byte of the width, and the body goes on: 4 the slot of the oldest
-- entry, 4 how many slots the ring has, 6 + 7 the oldest entry once more. The rings follow each other in the order of
-- the limits. The entries that have left, and those that must leave, are found by binary search with GETRANGE.
-- Commands of a long log: GETRANGE and some more to decide, SETRANGE twice and PEXPIRE to charge.
--
-- Place, 8 bytes: 5 + 3 the stamp.
local BODY_BYTES, BODY_FORMAT = 27, '>I5I3I7I7I4B'
local REWRITE_MAX = 500 -- entries per GETRANGE, so that a rewrite needs little memory
local RING_RESERVE = 32 -- free slots of a new ring, besides a quarter of its entries
local cycle_origin_us = origin % CYCLE_S * SECOND_US

local function format_of(bytes)
  if bytes == 2 then return '>I6I2', RANGE_2 elseif bytes == 4 then return '>I6I4', RANGE_4 end
  return '>I6I7', RANGE_7
end

local function bytes_for(units)
  if units < RANGE_2 then return 2 elseif units < RANGE_4 then return 4 end
  return 7
end

local function set_bytes(state, bytes)
  state.bytes = bytes
  state.format, state.modulus = format_of(bytes)
end

-- Stamp and total of an entry, 0 being the oldest.
local function entry(state, index)
  local entry_bytes = TICK_BYTES + state.bytes
  if not state.ring then return unpack(state.format, state.text, state.offset + index * entry_bytes) end
  if index == 0 then return state.oldest_tick, state.oldest_total end
  local offset = state.ring_start + (state.first + index) % state.capacity * entry_bytes
  return unpack(state.format, call('GETRANGE', state.key, offset, offset + entry_bytes - 1))
end

-- The first live entry, and the running total before it.
local function live_from(state, limit, now_us)
  local newest, count, base = state.newest, state.count, state.base
  if count == 0 then return 0, state.last end
  local cut_us = limit.window_us
  if now_us and now_us > newest then cut_us = cut_us - (now_us - newest) end
  if cut_us <= 0 then return count, state.last end
  local newest_tick = (newest + cycle_origin_us) % CYCLE_US
  local tick, total = entry(state, 0)
  if (newest_tick - tick) % CYCLE_US < cut_us then return 0, base end
  -- Mostly few entries have left, so a galloping search starts at the oldest. The newest entry is live.
  local gone, gone_total, live, step = 0, total, count - 1, 1
  while gone + step < live do
    tick, total = entry(state, gone + step)
    if (newest_tick - tick) % CYCLE_US < cut_us then
      live = gone + step
      break
    end
    gone, gone_total, step = gone + step, total, step * 2
  end
  while live - gone > 1 do
    local middle = floor((gone + live) / 2)
    tick, total = entry(state, middle)
    if (newest_tick - tick) % CYCLE_US < cut_us then live = middle else gone, gone_total = middle, total end
  end
  return live, gone_total
end

local function usage(state, limit, now_us)
  local live, before = live_from(state, limit, now_us)
  state.live, state.before, state.usage_at_us = live, before, now_us
  local used = (state.last - before) % state.modulus
  if used == 0 then return 0, 0 end
  return used, state.newest + limit.window_us - (now_us or 0)
end

-- Reads the entries of a ring into memory, oldest first.
local function gather(state)
  local entry_bytes, first, count, capacity = TICK_BYTES + state.bytes, state.first, state.count, state.capacity
  local ring_start, text = state.ring_start, ''
  if count > 0 then
    local last = first + count
    if last > capacity then last = capacity end
    text = call('GETRANGE', state.key, ring_start + first * entry_bytes, ring_start + last * entry_bytes - 1)
    if first + count > capacity then
      text = text .. call('GETRANGE', state.key, ring_start, ring_start + (first + count - capacity) * entry_bytes - 1)
    end
  end
  -- A charge that is not written yet is the newest entry.
  if state.slot then text = sub(text, 1, (count - 1) * entry_bytes) .. state.slot_bytes end
  state.ring, state.slot, state.text, state.offset = nil, nil, text, 1
end

-- Widens the totals until they hold `units`.
local function widen(state, units)
  if state.ring then gather(state) end
  local parts, base, modulus, bytes = {}, state.base, state.modulus, bytes_for(units)
  local format = format_of(bytes)
  for index = 1, state.count do
    local tick, total = entry(state, index - 1)
    parts[index] = pack(format, tick, (total - base) % modulus)
  end
  state.last, state.base = (state.last - base) % modulus, 0
  set_bytes(state, bytes)
  state.text, state.offset = table.concat(parts), 1
end

-- Rewrites the entries of a ring from `from` up to, but not including, `to`, with the totals that `total_of` returns.
local function rewrite(state, from, to, total_of)
  local entry_bytes, modulus = TICK_BYTES + state.bytes, state.modulus
  while from < to do
    local slot = (state.first + from) % state.capacity
    local count = to - from
    if count > state.capacity - slot then count = state.capacity - slot end
    if count > REWRITE_MAX then count = REWRITE_MAX end
    local offset, parts = state.ring_start + slot * entry_bytes, {}
    local text = call('GETRANGE', state.key, offset, offset + count * entry_bytes - 1)
    for index = 1, count do
      local tick, total = unpack(state.format, text, (index - 1) * entry_bytes + 1)
      total = total_of(from + index - 1, total) % modulus
      parts[index] = pack(state.format, tick, total)
      if from + index == 1 then state.oldest_total = total end
    end
    call('SETRANGE', state.key, offset, table.concat(parts))
    from = from + count
  end
end

-- The same as `lower`, in place: an emptied entry stays with no units, unless it is the newest. Totals are relative to
-- each other, so either the totals before the units or those after can be changed: it changes the fewer.
local function lower_ring(state, index, units)
  local modulus, count, before, _ = state.modulus, state.count, state.base, nil
  if index > 0 then _, before = entry(state, index - 1) end
  -- The last entry from which units are taken.
  local low, high = index - 1, count - 1
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    local _, total = entry(state, middle)
    if (total - before) % modulus >= units then high = middle else low = middle end
  end
  if count - index <= high then
    rewrite(state, index, count, function(each, total)
      if each < high then return before end
      return total - units
    end)
    state.last = (state.last - units) % modulus
  else
    rewrite(state, 0, high, function(each, total)
      if each < index then return total + units end
      return before + units
    end)
    state.base = (state.base + units) % modulus
  end
  -- Drop emptied entries at the newest end.
  local newest_tick, dropped = (state.newest + cycle_origin_us) % CYCLE_US, false
  while count > 0 do
    local tick, total = entry(state, count - 1)
    local older = state.base
    if count > 1 then _, older = entry(state, count - 2) end
    if total ~= older then
      if dropped then state.newest = state.newest - (newest_tick - tick) % CYCLE_US end
      break
    end
    count, dropped = count - 1, true
  end
  state.count = count
end

-- Takes `units`, which the entries from `index` on hold, oldest first.
local function lower(state, index, units)
  state.usage_at_us = nil
  if state.ring then return lower_ring(state, index, units) end
  local parts, modulus, base = {}, state.modulus, state.base
  local taken, kept, total_before, last_tick = 0, 0, base, nil
  for each = 0, state.count - 1 do
    local tick, total = entry(state, each)
    local held = (total - total_before) % modulus
    total_before = total
    if each >= index and taken < units then
      local part = units - taken
      if part > held then part = held end
      taken, held = taken + part, held - part
    end
    if held > 0 then
      kept = kept + 1
      parts[kept] = pack(state.format, tick, (total - taken) % modulus)
      last_tick = tick
    end
  end
  state.last = (state.last - units) % modulus
  state.text, state.offset, state.count = table.concat(parts), 1, kept
  if last_tick then
    state.newest = state.newest - ((state.newest + cycle_origin_us) % CYCLE_US - last_tick) % CYCLE_US
  end
end

local function charge_ring(state, stamp, live, before, cost)
  local entry_bytes, capacity, count = TICK_BYTES + state.bytes, state.capacity, state.count - live
  local total = (state.last + cost) % state.modulus
  local same = count > 0 and stamp == state.newest
  if not same and count == capacity then return false end
  if live > 0 and count > 0 then state.oldest_tick, state.oldest_total = entry(state, live) end
  state.first, state.base = (state.first + live) % capacity, before
  if not same then count = count + 1 end
  local tick = (stamp + cycle_origin_us) % CYCLE_US
  if count == 1 then state.oldest_tick, state.oldest_total = tick, total end
  state.slot = state.ring_start + (state.first + count - 1) % capacity * entry_bytes
  state.slot_bytes = pack(state.format, tick, total)
  state.count, state.last, state.newest = count, total, stamp
  return true
end

local function long_body(state)
  local s, us = stored_instant(state.newest)
  return pack('>I5I3I7I7I4BI4I4I6I7', s, us, state.base, state.last, state.count, state.bytes + LONG_FLAG, state.first,
    state.capacity, state.oldest_tick, state.oldest_total)
end

return {
  new = function(limit)
    local state = { newest = -origin * SECOND_US, base = 0, last = 0, count = 0, text = '', offset = 1 }
    set_bytes(state, bytes_for(limit.units))
    return state
  end,

  read = function(value, body, length)
    if length < BODY_BYTES then return nil end
    local s, us, base, last, count, bytes, offset = unpack(BODY_FORMAT, value, body)
    local state = { newest = (s - origin) * SECOND_US + us, base = base, last = last, count = count }
    if bytes < LONG_FLAG then
      if length ~= BODY_BYTES + count * (TICK_BYTES + bytes) then return nil end
      state.text, state.offset = value, offset
    else
      if length ~= LONG_BODY_BYTES then return nil end
      bytes, state.ring = bytes - LONG_FLAG, true
      state.first, state.capacity, state.oldest_tick, state.oldest_total = unpack('>I4I4I6I7', value, offset)
    end
    set_bytes(state, bytes)
    return state
  end,

  write = function(state)
    if state.ring then gather(state) end
    local s, us = stored_instant(state.newest)
    local offset = state.offset
    return pack(BODY_FORMAT, s, us, state.base, state.last, state.count, state.bytes)
      .. sub(state.text, offset, offset + state.count * (TICK_BYTES + state.bytes) - 1)
  end,

  usage = usage,

  decide = function(state, limit, now_us, cost)
    local used, reset_after_us = usage(state, limit, now_us)
    local missing = used + cost - limit.units
    if missing <= 0 then return used, reset_after_us, 0 end
    -- The first entry after whose expiry enough units have left.
    local before, modulus = state.before, state.modulus
    local low, high, step = state.live - 1, state.count - 1, 1
    local tick, total, found_tick
    while low + step < high do
      tick, total = entry(state, low + step)
      if (total - before) % modulus >= missing then
        high, found_tick = low + step, tick
        break
      end
      low, step = low + step, step * 2
    end
    while high - low > 1 do
      local middle = floor((low + high) / 2)
      tick, total = entry(state, middle)
      if (total - before) % modulus >= missing then high, found_tick = middle, tick else low = middle end
    end
    local age_us = 0
    if found_tick then age_us = ((state.newest + cycle_origin_us) % CYCLE_US - found_tick) % CYCLE_US end
    return used, reset_after_us, state.newest - age_us + limit.window_us - now_us
  end,

  charge = function(state, limit, now_us, cost)
    if state.usage_at_us ~= now_us then usage(state, limit, now_us) end
    local live, before, stamp = state.live, state.before, state.newest
    if now_us > stamp then stamp = now_us end
    local used = (state.last - before) % state.modulus + cost
    state.usage_at_us = nil
    if used >= state.modulus then
      widen(state, used)
      live, before = live_from(state, limit, now_us)
    end
    local place = pack('>I5I3', stored_instant(stamp))
    if state.ring then
      if charge_ring(state, stamp, live, before, cost) then return place, used, stamp + limit.window_us - now_us end
      gather(state)
    end
    local entry_bytes, offset, count = TICK_BYTES + state.bytes, state.offset, state.count
    local last = (state.last + cost) % state.modulus
    local kept = count
    if count > live and stamp == state.newest then kept = count - 1 end
    state.text = sub(state.text, offset + live * entry_bytes, offset + kept * entry_bytes - 1)
      .. pack(state.format, (stamp + cycle_origin_us) % CYCLE_US, last)
    state.offset, state.count, state.base, state.last, state.newest = 1, kept - live + 1, before, last, stamp
    return place, used, stamp + limit.window_us - now_us
  end,

  refund = function(state, now_us, charged, units)
    local stamp, effective_us = charged.stamp, state.newest
    if now_us > effective_us then effective_us = now_us end
    if stamp + state.window_us <= effective_us or stamp > state.newest then return 0 end
    local age_us, newest_tick = state.newest - stamp, (state.newest + cycle_origin_us) % CYCLE_US
    local low, high = -1, state.count
    while high - low > 1 do
      local middle = floor((low + high) / 2)
      if (newest_tick - entry(state, middle)) % CYCLE_US <= age_us then high = middle else low = middle end
    end
    if high == state.count then return 0 end
    local tick, total = entry(state, high)
    if (newest_tick - tick) % CYCLE_US ~= age_us then return 0 end
    local before = state.base
    if high > 0 then tick, before = entry(state, high - 1) end
    local held = (total - before) % state.modulus
    if units > held then units = held end
    if units > 0 then lower(state, high, units) end
    return units
  end,

  credit = function(state, limit, now_us, units)
    local used = usage(state, limit, now_us)
    if units > used then units = used end
    if units > 0 then lower(state, state.live, units) end
    return units
  end,

  charged_by_us = function(state) return state.newest end,

  gather = gather,

  -- Sets where the rings of a long value start: one after the other, from `offset` on.
  place_rings = function(key, states, offset)
    offset = offset - 1
    for index = 1, states.count do
      local state = states[index]
      state.key, state.ring_start = key, offset
      offset = offset + state.capacity * (TICK_BYTES + state.bytes)
    end
  end,

  -- Writes the changed slots of a long value. False, and nothing is written, if a ring must be rebuilt.
  write_rings = function(key, states, ttl)
    local parts = { pack(MAGIC_FORMAT, MAGIC, VERSION, states.count) }
    for index = 1, states.count do
      local state = states[index]
      if not state.ring then return false end
      if state.capacity > RING_SHRINK_MIN and state.count * RING_SPARSE < state.capacity then return false end
      parts[2 * index], parts[2 * index + 1] = head(state, LONG_BODY_BYTES), long_body(state)
    end
    for index = 1, states.count do
      local state = states[index]
      if state.slot then call('SETRANGE', key, state.slot, state.slot_bytes) end
    end
    call('SETRANGE', key, 0, table.concat(parts))
    call('PEXPIRE', key, ttl)
    return true
  end,

  -- A long value, with free slots in its rings.
  long = function(states)
    local count = states.count
    local parts = { pack(MAGIC_FORMAT, MAGIC, VERSION, count) }
    for index = 1, count do
      local state = states[index]
      local offset, entry_bytes = state.offset, TICK_BYTES + state.bytes
      state.first, state.capacity = 0, state.count + floor(state.count / 4) + RING_RESERVE
      state.oldest_tick, state.oldest_total = 0, 0
      if state.count > 0 then state.oldest_tick, state.oldest_total = entry(state, 0) end
      parts[2 * index], parts[2 * index + 1] = head(state, LONG_BODY_BYTES), long_body(state)
      parts[2 * count + 1 + index] = sub(state.text, offset, offset + state.count * entry_bytes - 1)
        .. string.rep('\0', (state.capacity - state.count) * entry_bytes)
    end
    return table.concat(parts)
  end,
}
