-- compact-log: a log that merges neighbours once it holds more than K entries. Also written in fast-compact-log.lua,
-- crates/slidegate/src/algorithm/compact_log.rs and testing/model/compact_log.rs; change all four.
--
-- Body, 26 bytes and the entries: 5 + 3 the newest stamp ever charged, 5 + 3 the newest stamp that a credit has
-- touched, 7 units in all entries, 2 how many entries, 1 bytes of an entry's units (2, 4 or 7), then the entries,
-- oldest first: 6 the stamp, in microseconds modulo 2^28 seconds, then 2 x units, + 1 if it was merged.
-- Place, 8 bytes: 5 + 3 the stamp.
local BODY_BYTES, BODY_FORMAT = 26, '>I5I3I5I3I7I2B'
local cycle_origin_us = origin % CYCLE_S * SECOND_US

local function format_of(bytes)
  if bytes == 2 then return '>I6I2' elseif bytes == 4 then return '>I6I4' end
  return '>I6I7'
end

local function bytes_for(units)
  if 2 * units + 1 < RANGE_2 then return 2 elseif 2 * units + 1 < RANGE_4 then return 4 end
  return 7
end

-- How much older than the newest stamp an entry is, and its marked units: 2 x units, + 1 if it was merged.
local function entry(state, index)
  local tick, marked = unpack(state.format, state.text, state.offset + index * (TICK_BYTES + state.bytes))
  return (state.newest_tick - tick) % CYCLE_US, marked
end

local function set_newest(state, newest)
  state.newest, state.newest_tick = newest, (newest + cycle_origin_us) % CYCLE_US
end

-- The first live entry, and the units before it.
local function live_from(state, limit, now_us)
  local newest, count = state.newest, state.count
  local cut_us = limit.window_us
  if now_us and now_us > newest then cut_us = cut_us - (now_us - newest) end
  if cut_us <= 0 then return count, state.sum end
  local gone_units = 0
  for index = 0, count - 1 do
    local age_us, marked = entry(state, index)
    if age_us < cut_us then return index, gone_units end
    gone_units = gone_units + floor(marked / 2)
  end
  return count, gone_units
end

local function usage_from(state, limit, now_us, live, gone_units)
  if live == state.count then return 0, 0 end
  local age_us = entry(state, state.count - 1)
  return state.sum - gone_units, state.newest - age_us + limit.window_us - now_us
end

local function usage(state, limit, now_us)
  return usage_from(state, limit, now_us or 0, live_from(state, limit, now_us))
end

-- All entries as two lists: ages and marked units.
local function decoded(state)
  local ages_us, marks = {}, {}
  for index = 0, state.count - 1 do ages_us[index + 1], marks[index + 1] = entry(state, index) end
  return ages_us, marks
end

local function encode(state, ages_us, marks, count)
  local parts, format, newest_tick = {}, format_of(state.bytes), state.newest_tick
  for index = 1, count do parts[index] = pack(format, (newest_tick - ages_us[index]) % CYCLE_US, marks[index]) end
  state.text, state.offset, state.count, state.format = table.concat(parts), 1, count, format
end

-- Merges neighbours while their sum is at most `group_max`.
local function merge(state, group_max)
  local ages_us, marks = decoded(state)
  local kept = 1
  for index = 2, state.count do
    local units = floor(marks[kept] / 2) + floor(marks[index] / 2)
    if units <= group_max then
      ages_us[kept], marks[kept] = ages_us[index], 2 * units + 1
    else
      kept = kept + 1
      ages_us[kept], marks[kept] = ages_us[index], marks[index]
    end
  end
  encode(state, ages_us, marks, kept)
end

-- Takes `units`, which the entries from `index` on hold, oldest first. Returns the age of the last entry taken from.
local function lower(state, ages_us, marks, index, units)
  local rest, count, age_us = units, state.count, nil
  while rest > 0 do
    local held = floor(marks[index] / 2)
    age_us = ages_us[index]
    if held <= rest then
      table.remove(ages_us, index)
      table.remove(marks, index)
      count, rest = count - 1, rest - held
    else
      marks[index], rest = marks[index] - 2 * rest, 0
    end
  end
  state.sum = state.sum - units
  encode(state, ages_us, marks, count)
  return age_us
end

return {
  new = function(limit)
    local zero, bytes = -origin * SECOND_US, bytes_for(limit.units)
    return {
      newest = zero, newest_tick = 0, credited = zero, sum = 0, count = 0, text = '', offset = 1,
      bytes = bytes, format = format_of(bytes),
    }
  end,

  read = function(value, body, length)
    if length < BODY_BYTES then return nil end
    local s, us, credited_s, credited_us, sum, count, bytes, offset = unpack(BODY_FORMAT, value, body)
    if length ~= BODY_BYTES + count * (TICK_BYTES + bytes) then return nil end
    local state = {
      credited = (credited_s - origin) * SECOND_US + credited_us, sum = sum, count = count, bytes = bytes,
      format = format_of(bytes), text = value, offset = offset,
    }
    set_newest(state, (s - origin) * SECOND_US + us)
    return state
  end,

  write = function(state)
    local s, us = stored_instant(state.newest)
    local credited_s, credited_us = stored_instant(state.credited)
    local offset = state.offset
    return pack(BODY_FORMAT, s, us, credited_s, credited_us, state.sum, state.count, state.bytes)
      .. sub(state.text, offset, offset + state.count * (TICK_BYTES + state.bytes) - 1)
  end,

  usage = usage,

  decide = function(state, limit, now_us, cost)
    local live, gone_units = live_from(state, limit, now_us)
    local used, reset_after_us = usage_from(state, limit, now_us, live, gone_units)
    local missing = used + cost - limit.units
    if missing <= 0 then return used, reset_after_us, 0 end
    local index, age_us, marked = live, nil, nil
    repeat
      age_us, marked = entry(state, index)
      missing, index = missing - floor(marked / 2), index + 1
    until missing <= 0
    return used, reset_after_us, state.newest - age_us + limit.window_us - now_us
  end,

  charge = function(state, limit, now_us, cost)
    local live, gone_units = live_from(state, limit, now_us)
    local stamp, count, entry_bytes = state.newest, state.count - live, TICK_BYTES + state.bytes
    if now_us > stamp then stamp = now_us end
    state.text = sub(state.text, state.offset + live * entry_bytes, state.offset + state.count * entry_bytes - 1)
    state.offset, state.count, state.sum = 1, count, state.sum - gone_units + cost
    if state.sum * 2 + 1 >= RANGE_1 ^ state.bytes and state.bytes < 7 then
      local ages_us, marks = decoded(state)
      state.bytes = bytes_for(state.sum)
      encode(state, ages_us, marks, count)
      entry_bytes = TICK_BYTES + state.bytes
    end
    local age_us, marked
    if count > 0 and stamp == state.newest then age_us, marked = entry(state, count - 1) end
    if age_us == 0 then
      state.text = sub(state.text, 1, (count - 1) * entry_bytes)
        .. pack(state.format, state.newest_tick, marked + 2 * cost)
    else
      if count >= limit.parameter then
        local sum_max = state.sum
        if limit.units > sum_max then sum_max = limit.units end
        merge(state, -floor(-2 * sum_max / (limit.parameter - 2)))
      end
      set_newest(state, stamp)
      state.text = state.text .. pack(state.format, state.newest_tick, 2 * cost)
      state.count = state.count + 1
    end
    return pack('>I5I3', stored_instant(stamp)), state.sum, stamp + limit.window_us - now_us
  end,

  -- Lowers the entry of that stamp, or the one that it was merged into.
  refund = function(state, now_us, charged, units)
    local stamp, effective_us = charged.stamp, state.newest
    if now_us > effective_us then effective_us = now_us end
    local charged_age_us = state.newest - stamp
    if stamp + state.window_us <= effective_us or charged_age_us < 0 then return 0 end
    local ages_us, marks = decoded(state)
    local index, count = 1, state.count
    while index <= count and ages_us[index] > charged_age_us do index = index + 1 end
    if index > count then return 0 end
    local held = floor(marks[index] / 2)
    local merged = marks[index] - 2 * held == 1
    -- A credit has taken units from entries merged up to there: whose units are left is unknown.
    if merged and stamp <= state.credited or not merged and ages_us[index] ~= charged_age_us then return 0 end
    if units > held then units = held end
    lower(state, ages_us, marks, index, units)
    return units
  end,

  credit = function(state, limit, now_us, units)
    local live, gone_units = live_from(state, limit, now_us)
    if units > state.sum - gone_units then units = state.sum - gone_units end
    if units == 0 then return 0 end
    local ages_us, marks = decoded(state)
    local stamp = state.newest - lower(state, ages_us, marks, live + 1, units)
    if stamp > state.credited then state.credited = stamp end
    return units
  end,

  charged_by_us = function(state) return state.newest end,
}
