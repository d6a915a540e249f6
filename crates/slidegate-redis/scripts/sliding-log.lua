-- sliding-log: every admitted request's time and cost.
--
-- Body, 27 bytes and the entries: 5 + 3 the newest stamp, 7 the running total before the first entry, 7 the running
-- total, 4 how many entries, 1 bytes of an entry's total (2, 4 or 7), then the entries, oldest first: 6 the stamp, in
-- microseconds modulo 2^28 seconds, then the running total with its units. Totals are modulo 2^16, 2^32 or 2^52:
-- whichever is more than what stands in the log. Requests of one microsecond share an entry. When nothing stands any
-- more, the newest stamp is the last that did: time does not run back behind it.
--
-- A value above 512 bytes is long: the entries are not in the body but in a ring after the last limit, of which a charge
-- writes one. 128 is added to the byte of the width, and the body goes on: 4 the place of the oldest entry in the ring,
-- 4 how many entries the ring can hold, 6 + 7 the oldest entry once more. The rings follow each other in the order of the
-- limits. Finding what has left, and what must leave, is a binary search with GETRANGE.
-- Commands of a long log: GETRANGE and some more to decide, SETRANGE twice and PEXPIRE to charge.
--
-- Place, 8 bytes: 5 + 3 the stamp.
local CYCLE = 268435456e6
local cycle_origin = origin % 268435456 * 1e6

local function format_of(bytes)
  if bytes == 2 then return '>I6I2', 65536 elseif bytes == 4 then return '>I6I4', 4294967296 end
  return '>I6I7', 4503599627370496
end

local function bytes_for(units)
  if units < 65536 then return 2 elseif units < 4294967296 then return 4 end
  return 7
end

local function set_bytes(state, bytes)
  state.bytes = bytes
  state.format, state.modulus = format_of(bytes)
end

-- Stamp and total of an entry, 0 being the oldest.
local function entry(state, index)
  local each = 6 + state.bytes
  if not state.ring then return unpack(state.format, state.text, state.offset + index * each) end
  if index == 0 then return state.oldest_tick, state.oldest_total end
  local at = state.region + (state.first + index) % state.capacity * each
  return unpack(state.format, call('GETRANGE', state.key, at, at + each - 1))
end

-- The first live entry, and the running total before it.
local function live_from(state, limit, at)
  local newest, count, base = state.newest, state.count, state.base
  if count == 0 then return 0, state.last end
  local cut = limit.window
  if at and at > newest then cut = cut - (at - newest) end
  if cut <= 0 then return count, state.last end
  local newest_tick = (newest + cycle_origin) % CYCLE
  local tick, total = entry(state, 0)
  if (newest_tick - tick) % CYCLE < cut then return 0, base end
  -- Mostly few have left: the search begins at the oldest. The newest entry is live.
  local gone, gone_total, live, step = 0, total, count - 1, 1
  while gone + step < live do
    tick, total = entry(state, gone + step)
    if (newest_tick - tick) % CYCLE < cut then
      live = gone + step
      break
    end
    gone, gone_total, step = gone + step, total, step * 2
  end
  while live - gone > 1 do
    local middle = floor((gone + live) / 2)
    tick, total = entry(state, middle)
    if (newest_tick - tick) % CYCLE < cut then live = middle else gone, gone_total = middle, total end
  end
  return live, gone_total
end

local function usage(state, limit, at)
  local live, before = live_from(state, limit, at)
  state.live, state.before, state.as_of = live, before, at
  local used = (state.last - before) % state.modulus
  if used == 0 then return 0, 0 end
  return used, state.newest + limit.window - (at or 0)
end

-- The entries of a ring into memory, oldest first.
local function gather(state)
  local each, first, count, capacity = 6 + state.bytes, state.first, state.count, state.capacity
  local region, text = state.region, ''
  if count > 0 then
    local last = first + count
    if last > capacity then last = capacity end
    text = call('GETRANGE', state.key, region + first * each, region + last * each - 1)
    if first + count > capacity then
      text = text .. call('GETRANGE', state.key, region, region + (first + count - capacity) * each - 1)
    end
  end
  -- What was charged and is not yet written is the newest entry.
  if state.slot then text = sub(text, 1, (count - 1) * each) .. state.slot_bytes end
  state.ring, state.slot, state.text, state.offset = nil, nil, text, 1
end

-- Makes the totals so wide that they hold `units`.
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

-- Writes the entries of a ring from `from` up to but without `to` once more, with the totals that `total_of` says.
local function rewrite(state, from, to, total_of)
  local each, modulus = 6 + state.bytes, state.modulus
  while from < to do
    local place = (state.first + from) % state.capacity
    local count = to - from
    if count > state.capacity - place then count = state.capacity - place end
    if count > 500 then count = 500 end
    local at, parts = state.region + place * each, {}
    local text = call('GETRANGE', state.key, at, at + count * each - 1)
    for index = 1, count do
      local tick, total = unpack(state.format, text, (index - 1) * each + 1)
      total = total_of(from + index - 1, total) % modulus
      parts[index] = pack(state.format, tick, total)
      if from + index == 1 then state.oldest_total = total end
    end
    call('SETRANGE', state.key, at, table.concat(parts))
    from = from + count
  end
end

-- The same as `lower` where the entries are: what is emptied stays as an entry of no units, but not as the newest.
-- Totals are only known relative to each other, so that either those before or those after can be changed: the fewer.
local function lower_ring(state, index, units)
  local modulus, count, before, _ = state.modulus, state.count, state.base, nil
  if index > 0 then _, before = entry(state, index - 1) end
  -- The last entry from which something is taken.
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
  -- Nothing newer stands any more.
  local newest_tick, dropped = (state.newest + cycle_origin) % CYCLE, false
  while count > 0 do
    local tick, total = entry(state, count - 1)
    local older = state.base
    if count > 1 then _, older = entry(state, count - 2) end
    if total ~= older then
      if dropped then state.newest = state.newest - (newest_tick - tick) % CYCLE end
      break
    end
    count, dropped = count - 1, true
  end
  state.count = count
end

-- Takes `units` from the entries from `index` on, oldest first; they hold so many.
local function lower(state, index, units)
  state.as_of = nil
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
    state.newest = state.newest - ((state.newest + cycle_origin) % CYCLE - last_tick) % CYCLE
  end
end

local function charge_ring(state, stamp, live, before, cost)
  local each, capacity, count = 6 + state.bytes, state.capacity, state.count - live
  local total = (state.last + cost) % state.modulus
  local same = count > 0 and stamp == state.newest
  if not same and count == capacity then return false end
  if live > 0 and count > 0 then state.oldest_tick, state.oldest_total = entry(state, live) end
  state.first, state.base = (state.first + live) % capacity, before
  if not same then count = count + 1 end
  local tick = (stamp + cycle_origin) % CYCLE
  if count == 1 then state.oldest_tick, state.oldest_total = tick, total end
  state.slot = state.region + (state.first + count - 1) % capacity * each
  state.slot_bytes = pack(state.format, tick, total)
  state.count, state.last, state.newest = count, total, stamp
  return true
end

local LONG_BYTES = 48

local function long_body(state)
  local s, us = instant(state.newest)
  return pack('>I5I3I7I7I4BI4I4I6I7', s, us, state.base, state.last, state.count, state.bytes + 128, state.first,
    state.capacity, state.oldest_tick, state.oldest_total)
end

return {
  new = function(limit)
    local state = { newest = -origin * 1e6, base = 0, last = 0, count = 0, text = '', offset = 1 }
    set_bytes(state, bytes_for(limit.units))
    return state
  end,

  read = function(value, body, length)
    if length < 27 then return nil end
    local s, us, base, last, count, bytes, offset = unpack('>I5I3I7I7I4B', value, body)
    local state = { newest = (s - origin) * 1e6 + us, base = base, last = last, count = count }
    if bytes < 128 then
      if length ~= 27 + count * (6 + bytes) then return nil end
      state.text, state.offset = value, offset
    else
      if length ~= LONG_BYTES then return nil end
      bytes, state.ring = bytes - 128, true
      state.first, state.capacity, state.oldest_tick, state.oldest_total = unpack('>I4I4I6I7', value, offset)
    end
    set_bytes(state, bytes)
    return state
  end,

  write = function(state)
    if state.ring then gather(state) end
    local s, us = instant(state.newest)
    local offset = state.offset
    return pack('>I5I3I7I7I4B', s, us, state.base, state.last, state.count, state.bytes)
      .. sub(state.text, offset, offset + state.count * (6 + state.bytes) - 1)
  end,

  usage = usage,

  decide = function(state, limit, at, cost)
    local used, reset = usage(state, limit, at)
    local missing = used + cost - limit.units
    if missing <= 0 then return used, reset, 0 end
    -- The first entry with whose leaving enough has left.
    local before, modulus = state.before, state.modulus
    local low, high, step = state.live - 1, state.count - 1, 1
    local tick, total, found
    while low + step < high do
      tick, total = entry(state, low + step)
      if (total - before) % modulus >= missing then
        high, found = low + step, tick
        break
      end
      low, step = low + step, step * 2
    end
    while high - low > 1 do
      local middle = floor((low + high) / 2)
      tick, total = entry(state, middle)
      if (total - before) % modulus >= missing then high, found = middle, tick else low = middle end
    end
    local age = 0
    if found then age = ((state.newest + cycle_origin) % CYCLE - found) % CYCLE end
    return used, reset, state.newest - age + limit.window - at
  end,

  charge = function(state, limit, at, cost)
    if state.as_of ~= at then usage(state, limit, at) end
    local live, before, stamp = state.live, state.before, state.newest
    if at > stamp then stamp = at end
    local used = (state.last - before) % state.modulus + cost
    state.as_of = nil
    if used >= state.modulus then
      widen(state, used)
      live, before = live_from(state, limit, at)
    end
    local place = pack('>I5I3', instant(stamp))
    if state.ring then
      if charge_ring(state, stamp, live, before, cost) then return place, used, stamp + limit.window - at end
      gather(state)
    end
    local each, offset, count = 6 + state.bytes, state.offset, state.count
    local last = (state.last + cost) % state.modulus
    local kept = count
    if count > live and stamp == state.newest then kept = count - 1 end
    state.text = sub(state.text, offset + live * each, offset + kept * each - 1)
      .. pack(state.format, (stamp + cycle_origin) % CYCLE, last)
    state.offset, state.count, state.base, state.last, state.newest = 1, kept - live + 1, before, last, stamp
    return place, used, stamp + limit.window - at
  end,

  refund = function(state, at, charged, units)
    local stamp, effective = charged.stamp, state.newest
    if at > effective then effective = at end
    if stamp + state.window <= effective or stamp > state.newest then return 0 end
    local age, newest_tick = state.newest - stamp, (state.newest + cycle_origin) % CYCLE
    local low, high = -1, state.count
    while high - low > 1 do
      local middle = floor((low + high) / 2)
      if (newest_tick - entry(state, middle)) % CYCLE <= age then high = middle else low = middle end
    end
    if high == state.count then return 0 end
    local tick, total = entry(state, high)
    if (newest_tick - tick) % CYCLE ~= age then return 0 end
    local before = state.base
    if high > 0 then tick, before = entry(state, high - 1) end
    local held = (total - before) % state.modulus
    if units > held then units = held end
    if units > 0 then lower(state, high, units) end
    return units
  end,

  credit = function(state, limit, at, units)
    local used = usage(state, limit, at)
    if units > used then units = used end
    if units > 0 then lower(state, state.live, units) end
    return units
  end,

  charged_by = function(state) return state.newest end,

  gather = gather,

  -- Where the rings of a long value are: one after the other, from `at` on.
  place_rings = function(key, states, at)
    at = at - 1
    for index = 1, states.count do
      local state = states[index]
      state.key, state.region = key, at
      at = at + state.capacity * (6 + state.bytes)
    end
  end,

  -- Writes what charges changed in a long value; not if a ring must be made anew.
  write_rings = function(key, states, ttl)
    local parts = { pack('>I2BB', 21319, 1, states.count) }
    for index = 1, states.count do
      local state = states[index]
      if not state.ring or (state.capacity > 256 and state.count * 8 < state.capacity) then return false end
      parts[2 * index], parts[2 * index + 1] = head(state, LONG_BYTES), long_body(state)
    end
    for index = 1, states.count do
      local state = states[index]
      if state.slot then call('SETRANGE', key, state.slot, state.slot_bytes) end
    end
    call('SETRANGE', key, 0, table.concat(parts))
    call('PEXPIRE', key, ttl)
    return true
  end,

  -- A long value, with room in its rings for more.
  long = function(states)
    local count = states.count
    local parts = { pack('>I2BB', 21319, 1, count) }
    for index = 1, count do
      local state = states[index]
      local offset, each = state.offset, 6 + state.bytes
      state.first, state.capacity = 0, state.count + floor(state.count / 4) + 32
      state.oldest_tick, state.oldest_total = 0, 0
      if state.count > 0 then state.oldest_tick, state.oldest_total = entry(state, 0) end
      parts[2 * index], parts[2 * index + 1] = head(state, LONG_BYTES), long_body(state)
      parts[2 * count + 1 + index] = sub(state.text, offset, offset + state.count * each - 1)
        .. string.rep('\0', (state.capacity - state.count) * each)
    end
    return table.concat(parts)
  end,
}
