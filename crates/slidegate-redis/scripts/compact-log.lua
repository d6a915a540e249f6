-- compact-log: a log that merges neighbours once it holds more than K entries.
--
-- Body, 26 bytes and the entries: 5 + 3 the newest stamp ever charged, 5 + 3 the newest stamp that a credit has
-- touched, 7 units in all entries, 2 how many entries, 1 bytes of an entry's units (2, 4 or 7), then the entries,
-- oldest first: 6 the stamp, in microseconds modulo 2^28 seconds, then 2 x units, + 1 if it was merged.
-- Place, 8 bytes: 5 + 3 the stamp.
local CYCLE = 268435456e6
local cycle_origin = origin % 268435456 * 1e6

local function format_of(bytes)
  if bytes == 2 then return '>I6I2' elseif bytes == 4 then return '>I6I4' end
  return '>I6I7'
end

local function bytes_for(units)
  if units < 32768 then return 2 elseif units < 2147483648 then return 4 end
  return 7
end

-- How much older than the newest stamp an entry is, and its units, doubled and marked.
local function entry(state, index)
  local tick, marked = unpack(state.format, state.text, state.offset + index * (6 + state.bytes))
  return (state.newest_tick - tick) % CYCLE, marked
end

local function set_newest(state, newest)
  state.newest, state.newest_tick = newest, (newest + cycle_origin) % CYCLE
end

-- The first live entry, and the units before it.
local function live_from(state, limit, at)
  local newest, count = state.newest, state.count
  local cut = limit.window
  if at and at > newest then cut = cut - (at - newest) end
  if cut <= 0 then return count, state.sum end
  local gone = 0
  for index = 0, count - 1 do
    local age, marked = entry(state, index)
    if age < cut then return index, gone end
    gone = gone + floor(marked / 2)
  end
  return count, gone
end

local function usage_from(state, limit, at, live, gone)
  if live == state.count then return 0, 0 end
  local age = entry(state, state.count - 1)
  return state.sum - gone, state.newest - age + limit.window - at
end

local function usage(state, limit, at)
  return usage_from(state, limit, at or 0, live_from(state, limit, at))
end

-- All entries as two lists: ages and marked units.
local function decoded(state)
  local ages, marks = {}, {}
  for index = 0, state.count - 1 do ages[index + 1], marks[index + 1] = entry(state, index) end
  return ages, marks
end

local function encode(state, ages, marks, count)
  local parts, format, newest_tick = {}, format_of(state.bytes), state.newest_tick
  for index = 1, count do parts[index] = pack(format, (newest_tick - ages[index]) % CYCLE, marks[index]) end
  state.text, state.offset, state.count, state.format = table.concat(parts), 1, count, format
end

-- Merges neighbours while their sum is at most `group_max`.
local function merge(state, group_max)
  local ages, marks = decoded(state)
  local kept = 1
  for index = 2, state.count do
    local units = floor(marks[kept] / 2) + floor(marks[index] / 2)
    if units <= group_max then
      ages[kept], marks[kept] = ages[index], 2 * units + 1
    else
      kept = kept + 1
      ages[kept], marks[kept] = ages[index], marks[index]
    end
  end
  encode(state, ages, marks, kept)
end

-- Takes `units` from the entries from `index` on, oldest first; they hold so many. Says how old the last of them is.
local function lower(state, ages, marks, index, units)
  local rest, count, age = units, state.count, nil
  while rest > 0 do
    local held = floor(marks[index] / 2)
    age = ages[index]
    if held <= rest then
      table.remove(ages, index)
      table.remove(marks, index)
      count, rest = count - 1, rest - held
    else
      marks[index], rest = marks[index] - 2 * rest, 0
    end
  end
  state.sum = state.sum - units
  encode(state, ages, marks, count)
  return age
end

return {
  new = function(limit)
    local zero, bytes = -origin * 1e6, bytes_for(limit.units)
    return {
      newest = zero, newest_tick = 0, credited = zero, sum = 0, count = 0, text = '', offset = 1,
      bytes = bytes, format = format_of(bytes),
    }
  end,

  read = function(value, body, length)
    if length < 26 then return nil end
    local s, us, cs, cus, sum, count, bytes, offset = unpack('>I5I3I5I3I7I2B', value, body)
    if length ~= 26 + count * (6 + bytes) then return nil end
    local state = {
      credited = (cs - origin) * 1e6 + cus, sum = sum, count = count, bytes = bytes, format = format_of(bytes),
      text = value, offset = offset,
    }
    set_newest(state, (s - origin) * 1e6 + us)
    return state
  end,

  write = function(state)
    local s, us = instant(state.newest)
    local cs, cus = instant(state.credited)
    local offset = state.offset
    return pack('>I5I3I5I3I7I2B', s, us, cs, cus, state.sum, state.count, state.bytes)
      .. sub(state.text, offset, offset + state.count * (6 + state.bytes) - 1)
  end,

  usage = usage,

  decide = function(state, limit, at, cost)
    local live, gone = live_from(state, limit, at)
    local used, reset = usage_from(state, limit, at, live, gone)
    local missing = used + cost - limit.units
    if missing <= 0 then return used, reset, 0 end
    local index, age, marked = live, nil, nil
    repeat
      age, marked = entry(state, index)
      missing, index = missing - floor(marked / 2), index + 1
    until missing <= 0
    return used, reset, state.newest - age + limit.window - at
  end,

  charge = function(state, limit, at, cost)
    local live, gone = live_from(state, limit, at)
    local stamp, count, each = state.newest, state.count - live, 6 + state.bytes
    if at > stamp then stamp = at end
    state.text = sub(state.text, state.offset + live * each, state.offset + state.count * each - 1)
    state.offset, state.count, state.sum = 1, count, state.sum - gone + cost
    if state.sum * 2 + 1 >= 256 ^ state.bytes and state.bytes < 7 then
      local ages, marks = decoded(state)
      state.bytes = bytes_for(state.sum)
      encode(state, ages, marks, count)
      each = 6 + state.bytes
    end
    local age, marked
    if count > 0 and stamp == state.newest then age, marked = entry(state, count - 1) end
    if age == 0 then
      state.text = sub(state.text, 1, (count - 1) * each) .. pack(state.format, state.newest_tick, marked + 2 * cost)
    else
      if count >= limit.parameter then
        local most = state.sum
        if limit.units > most then most = limit.units end
        merge(state, -floor(-2 * most / (limit.parameter - 2)))
      end
      set_newest(state, stamp)
      state.text = state.text .. pack(state.format, state.newest_tick, 2 * cost)
      state.count = state.count + 1
    end
    return pack('>I5I3', instant(stamp)), state.sum, stamp + limit.window - at
  end,

  -- Lowers the entry of that stamp, or the one that it was merged into.
  refund = function(state, at, charged, units)
    local stamp, effective = charged.stamp, state.newest
    if at > effective then effective = at end
    local charged_age = state.newest - stamp
    if stamp + state.window <= effective or charged_age < 0 then return 0 end
    local ages, marks = decoded(state)
    local index, count = 1, state.count
    while index <= count and ages[index] > charged_age do index = index + 1 end
    if index > count then return 0 end
    local held = floor(marks[index] / 2)
    local merged = marks[index] - 2 * held == 1
    -- A credit has taken from what was merged up to there, and nobody knows whose units are left.
    if merged and stamp <= state.credited or not merged and ages[index] ~= charged_age then return 0 end
    if units > held then units = held end
    lower(state, ages, marks, index, units)
    return units
  end,

  credit = function(state, limit, at, units)
    local live, gone = live_from(state, limit, at)
    if units > state.sum - gone then units = state.sum - gone end
    if units == 0 then return 0 end
    local ages, marks = decoded(state)
    local stamp = state.newest - lower(state, ages, marks, live + 1, units)
    if stamp > state.credited then state.credited = stamp end
    return units
  end,

  charged_by = function(state) return state.newest end,
}
