-- Values: how the states of one (rule, key) are kept in one STRING, version 1. Numbers are big endian.
--
--   bytes  what
--   2      "SG"
--   1      version: 1
--   1      number of limits, 1 to 16
--   then per limit
--   1      algorithm (1 sliding-log, 2 compact-log, 3 sliding-buckets, 4 sliding-counter, 5 fixed-window, 6 gcra,
--          7 sliding-log/sorted-set), + 16 x edge (0 full, 1 interpolated, 2 dropped)
--   2      buckets or entries, else 0
--   6      window in microseconds
--   5      units of the limit, as last charged
--   6      generation: a number drawn when the state began; receipts of another one give nothing back
--   4      length of the body
--   ...    body, see the file of the algorithm
--   after the last limit: the rings of long logs, see sliding-log.lua
--
-- Values of up to 512 bytes are one read and one `SET ... PX`. TTL rule: the longest of (time until nothing is used, and
-- the window or 10 s if that is longer) over the limits; one hour at injected time.
-- What 5 + 3 bytes hold of an instant.
local function instant(at)
  local whole = floor(at / 1e6)
  if whole + origin < 0 then return 0, 0 end
  return whole + origin, at - whole * 1e6
end

-- The start of the window, counted from 1970, that holds an instant.
local function aligned(at, width)
  if origin == 0 then return at - at % width end
  -- origin x 10^6 passes 2^53: the factor is taken in steps, and no step passes 2^52.
  local phase = origin % width * 1000 % width * 100 % width * 10 % width
  return at - (at % width + phase) % width
end

local HEAD_BYTES = 24
local NEAR_BYTES = 512 -- Redis hashes every byte that a script reads, so that reading less is worth while
local USED_MAX = 562949953421311 -- 2^49 - 1

-- The functions of an algorithm; they are made when they are asked for, as making them costs at every call.
local algorithm
local modules = {}
local function module(code)
  local found = modules[code]
  if not found then
    found = algorithm(code)
    modules[code] = found
  end
  return found
end

-- The states of a key, one per limit as last kept; nil if there are none. Or nil and why the value cannot be read.
-- An empty value counts as none: it looks the same, and to ask would be one more command for every new key.
local function read(key, limits)
  local name, value = key, nil
  if limits[1].code == 7 then
    name = module(7).value_name(key)
    value = call('GETRANGE', name, '0', '511')
    if value == '' then
      local taken, why = module(7).take_over(key, limits)
      if taken or why then return taken, why end
    end
    if value == '' or call('TYPE', key).ok == 'string' then
      -- The layout was packed until now, or there is nothing. Or a set that was emptied is gone, so that a caller with
      -- another layout or algorithm saw nothing, and began anew.
      name = key
      value = call('GETRANGE', name, '0', '511')
    end
  else
    value = redis.pcall('GETRANGE', name, '0', '511')
    if type(value) == 'table' then
      -- The rule's log was kept in sorted sets until now; or else it is another's.
      name = module(7).value_name(key)
      local beside = call('GETRANGE', name, '0', '511')
      if beside == '' then return nil, value.err end
      value = beside
    end
  end
  local size = #value
  if size == 0 then return nil end
  if size < 4 then return nil, 'SLIDEGATE foreign: a value of this key is not ours' end
  local magic, version, count = unpack('>I2BB', value)
  if magic ~= 21319 then return nil, 'SLIDEGATE foreign: a value of this key is not ours' end
  if version ~= 1 then return nil, 'SLIDEGATE newer: a value of this key has a version that this script does not know' end
  local states, at, whole = { count = count }, 5, size < NEAR_BYTES
  for index = 1, count do
    if at + HEAD_BYTES - 1 > size and not whole then
      -- Far enough for the heads of sixteen long logs.
      value = call('GETRANGE', name, '0', '2047')
      size = #value
      whole = size < 2048
    end
    if at + HEAD_BYTES - 1 > size then return nil, 'SLIDEGATE damaged: a value of this key is cut off' end
    local code, parameter, window, units, generation, length, body = unpack('>BI2I6I5I6I4', value, at)
    local edge = floor(code / 16)
    code = code - edge * 16
    at = body + length
    if at - 1 > size and not whole then
      value, whole = call('GET', name), true
      size = #value
    end
    if at - 1 > size or code < 1 or code > 7 then
      return nil, 'SLIDEGATE damaged: a value of this key is cut off or unknown'
    end
    local state = module(code).read(value, body, length)
    if not state then return nil, 'SLIDEGATE damaged: a value of this key does not add up' end
    state.code, state.edge, state.parameter, state.window = code, edge, parameter, window
    state.units, state.generation, state.width = units, generation, window
    if code == 3 then state.width = -floor(-window / parameter) end
    states[index] = state
  end
  if count == 0 then return nil, 'SLIDEGATE damaged: a value of this key has no limits' end
  if states[1].ring then module(1).place_rings(key, states, at) end
  if states[1].code == 7 then module(7).name_sets(key, states) end
  return states
end

-- How long a state must be kept, in microseconds, when nothing is used after `reset_after`.
local function lasts(reset_after, window)
  if window < 1e7 then window = 1e7 end
  if type(reset_after) ~= 'number' then return EXACT end
  return reset_after + window
end

-- A time to live in milliseconds.
local function ttl(lasts_us)
  if injected then return '3600000' end
  if lasts_us > 1e15 then lasts_us = 1e15 end
  return string.format('%d', -floor(-lasts_us / 1000))
end

local function head(state, length)
  return pack('>BI2I6I5I6I4', state.code + 16 * state.edge, state.parameter, state.window, state.units,
    state.generation, length)
end

-- Makes a limit the one that a state was last kept under.
local function keep_under(state, limit)
  state.units, state.parameter, state.edge = limit.units, limit.parameter, limit.edge
end

-- Writes the states of a key.
local function write(key, states, lasts_us)
  local count = states.count
  local first = states[1]
  if first.ring and module(1).write_rings(key, states, ttl(lasts_us)) then return end
  local text
  if count == 1 then
    local body = module(first.code).write(first)
    text = pack('>I2BBBI2I6I5I6I4', 21319, 1, 1, first.code + 16 * first.edge, first.parameter, first.window,
      first.units, first.generation, #body) .. body
  else
    local parts = { pack('>I2BB', 21319, 1, count) }
    for index = 1, count do
      local state = states[index]
      local body = module(state.code).write(state)
      parts[2 * index], parts[2 * index + 1] = head(state, #body), body
    end
    text = table.concat(parts)
  end
  if #text > NEAR_BYTES and first.code == 1 then text = module(1).long(states) end
  if first.code ~= 7 then
    call('SET', key, text, 'PX', ttl(lasts_us))
    if states.from_sets then module(7).forget(key, states.left) end
  else
    call('SET', module(7).value_name(key), text, 'PX', ttl(lasts_us))
    module(7).flush(key, states, ttl(lasts_us))
  end
end

-- Charges what may be far above the limit; what would take the use above USED_MAX is not counted.
local function charge_excess(state, limit, at, units)
  local functions = module(state.code)
  local used = functions.usage(state, limit, at)
  if used > USED_MAX then used = USED_MAX end
  if units > USED_MAX - used then units = USED_MAX - used end
  if units > 0 then
    functions.charge(state, limit, at, units)
    keep_under(state, limit)
  end
end

-- A state of a key that nobody has charged.
local function fresh(key, limit, generation)
  local state = module(limit.code).new(limit, key)
  state.code, state.edge, state.parameter, state.window = limit.code, limit.edge, limit.parameter, limit.window
  state.units, state.generation, state.width = limit.units, generation, limit.width
  return state
end

-- The most that is used of any limit, under the limits that the states have; `at` nil: at the last charge.
local function used_max(states, at)
  local most = 0
  for index = 1, states.count do
    local state = states[index]
    local used = module(state.code).usage(state, state, at)
    if used > most then most = used end
  end
  return most
end

-- Writes the states of a key that no charge was made to: what is used says how long they are kept.
local function write_as_used(key, states)
  local longest = 0
  for index = 1, states.count do
    local state = states[index]
    local _, reset = module(state.code).usage(state, state, now)
    local each = lasts(reset, state.window)
    if each > longest then longest = each end
  end
  write(key, states, longest)
end

-- Each limit goes on with the state of its own geometry; one that has none begins at `at` with the largest use of all as of
-- `used_at`. The sorted sets that nobody goes on with are `left`.
local function followed(key, states, limits, at, used_at, generation)
  local follow, left = { count = limits.count }, {}
  for older = 1, states.count do
    if states[older].ring then module(1).gather(states[older]) end
    left[states[older]] = states[older].set
  end
  local used = used_max(states, used_at)
  for index = 1, limits.count do
    local limit = limits[index]
    for older = 1, states.count do
      local state = states[older]
      if state.code == limit.code and state.window == limit.window and state.width == limit.width then
        follow[index], left[state] = state, nil
        break
      end
    end
    if not follow[index] then
      local state = fresh(key, limit, generation)
      charge_excess(state, limit, at, used)
      follow[index] = state
    end
  end
  follow.left, follow.from_sets = left, states[1].code == 7
  return follow
end

-- Whether every limit finds its own geometry in its place.
local function fits(states, limits)
  if states.count ~= limits.count then return false end
  for index = 1, limits.count do
    local state, limit = states[index], limits[index]
    if state.code ~= limit.code or state.window ~= limit.window or state.width ~= limit.width then return false end
  end
  return true
end

-- The states as the limits need them. Where they do not fit, a limit that has none of its geometry begins with the
-- largest use of all at the last charge, stamped at the latest instant that this may have been; all of them get a
-- new generation, as receipts of before no longer fit.
local function suited(key, states, limits, generation)
  if not states then
    states = { count = limits.count }
    for index = 1, limits.count do states[index] = fresh(key, limits[index], generation) end
    return states
  end
  if fits(states, limits) then return states end
  local charged_by = -EXACT
  for index = 1, states.count do
    local state = states[index]
    local by = module(state.code).charged_by(state)
    if by > charged_by then charged_by = by end
  end
  states = followed(key, states, limits, charged_by, nil, generation)
  for index = 1, states.count do states[index].generation = generation end
  return states
end

-- The limits of an ask from ARGV[first]: form, then units, window and, of a receipt, place of every limit; and the index
-- after them.
local function limits_from(first, placed)
  local name, parameter, edge_name, count, shadow = ARGV[first], 0, '', 1, ''
  if string.find(name, ',', 1, true) then
    name, parameter, edge_name, count, shadow =
      string.match(name, '^([^,]+),(%d+),?([a-z]*),?(%d*),?([a-z]*)$')
    parameter, count = tonumber(parameter), tonumber(count) or 1
  end
  local code, edge = nil, 0
  if name == 'sliding-log' then code = 1
  elseif name == 'compact-log' then code = 2
  elseif name == 'sliding-buckets' then code = 3
  elseif name == 'sliding-counter' then code = 4
  elseif name == 'fixed-window' then code = 5
  elseif name == 'gcra' then code = 6
  elseif name == 'sliding-log/sorted-set' then code = 7
  end
  -- Buckets and entries are at least one, also for other callers than the store.
  if not code or (parameter == 0 and (code == 2 or code == 3)) then
    error('this form of an ask is not known: ' .. ARGV[first])
  end
  if edge_name == 'interpolated' then edge = 1 elseif edge_name == 'dropped' then edge = 2 end
  local limits = { count = count, shadow = shadow == 'shadow' }
  first = first + 1
  for index = 1, count do
    local units, window = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
    -- The width is that of a bucket, if there are buckets.
    local width = window
    if code == 3 then width = -floor(-window / parameter) end
    limits[index] = { code = code, parameter = parameter, edge = edge, units = units, window = window, width = width }
    first = first + 2
    if placed then
      local generation, s, us = unpack('>I6I5I3', ARGV[first])
      limits[index].generation, limits[index].stamp, limits[index].place = generation, (s - origin) * 1e6 + us, ARGV[first]
      first = first + 1
    end
  end
  return limits, first
end
