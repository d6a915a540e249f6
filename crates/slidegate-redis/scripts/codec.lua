-- Values: the states of one (rule, key) are stored in one STRING, version 1. Numbers are big endian.
--
--   bytes  content
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
-- Values of up to 512 bytes take one read and one `SET ... PX`. TTL rule: the longest of (time until nothing is used,
-- and the window or 10 s if that is longer) over the limits; one hour at injected time.
local SLIDING_LOG, COMPACT_LOG, SLIDING_BUCKETS, SLIDING_COUNTER, FIXED_WINDOW, GCRA, SORTED_SET = 1, 2, 3, 4, 5, 6, 7
local EDGE_INTERPOLATED, EDGE_DROPPED, EDGE_FACTOR = 1, 2, 16
local MAGIC, VERSION, MAGIC_BYTES, HEAD_BYTES = 0x5347, 1, 4, 24 -- "SG"
local MAGIC_FORMAT, HEAD_FORMAT = '>I2BB', '>BI2I6I5I6I4'
local HEADS_BYTES, HEADS_LAST = 2048, '2047' -- enough for the heads and bodies of sixteen long logs
local USED_MAX = 562949953421311 -- 2^49 - 1: the most units that a state counts as used

-- An instant as it is stored: seconds and microseconds since 1970.
local function stored_instant(at_us)
  local whole = floor(at_us / SECOND_US)
  if whole + origin < 0 then return 0, 0 end
  return whole + origin, at_us - whole * SECOND_US
end

-- The start of the window or bucket, counted from 1970, that holds an instant.
local function aligned(at_us, width_us)
  if origin == 0 then return at_us - at_us % width_us end
  -- origin x 10^6 passes 2^53: the factor is taken in steps, and no step passes 2^52.
  local phase = origin % width_us * 1000 % width_us * 100 % width_us * 10 % width_us
  return at_us - (at_us % width_us + phase) % width_us
end

-- The functions of an algorithm. They are made on first use, because making them costs time in every call.
local make_algorithm
local algorithms = {}
local function algorithm(code)
  local functions = algorithms[code]
  if not functions then
    functions = make_algorithm(code)
    algorithms[code] = functions
  end
  return functions
end

-- The states of a key, one per limit as last stored; nil if there are none. Or nil and why the value cannot be read.
-- An empty value counts as none: to tell the two apart would take one more command for every new key.
local function read(key, limits)
  local name, value = key, nil
  if limits[1].code == SORTED_SET then
    name = algorithm(SORTED_SET).value_name(key)
    value = call('GETRANGE', name, '0', NEAR_LAST)
    if value == '' then
      local taken, why = algorithm(SORTED_SET).take_over(key, limits)
      if taken or why then return taken, why end
    end
    if value == '' or call('TYPE', key).ok == 'string' then
      -- The layout was packed until now, or there is no state. Or the set was emptied, which deletes it, and a caller
      -- with another layout or algorithm found no key and began a packed state.
      name = key
      value = call('GETRANGE', name, '0', NEAR_LAST)
    end
  else
    value = redis.pcall('GETRANGE', name, '0', NEAR_LAST)
    if type(value) == 'table' then
      -- The rule's log was stored in sorted sets until now, or the key belongs to another program.
      name = algorithm(SORTED_SET).value_name(key)
      local beside = call('GETRANGE', name, '0', NEAR_LAST)
      if beside == '' then return nil, value.err end
      value = beside
    end
  end
  local size = #value
  if size == 0 then return nil end
  if size < MAGIC_BYTES then return nil, 'SLIDEGATE foreign: a value of this key is not ours' end
  local magic, version, count = unpack(MAGIC_FORMAT, value)
  if magic ~= MAGIC then return nil, 'SLIDEGATE foreign: a value of this key is not ours' end
  if version ~= VERSION then
    return nil, 'SLIDEGATE newer: a value of this key has a version that this script does not know'
  end
  local states, offset, complete = { count = count }, MAGIC_BYTES + 1, size < NEAR_BYTES
  for index = 1, count do
    if offset + HEAD_BYTES - 1 > size and not complete then
      value = call('GETRANGE', name, '0', HEADS_LAST)
      size = #value
      complete = size < HEADS_BYTES
    end
    if offset + HEAD_BYTES - 1 > size then return nil, 'SLIDEGATE damaged: a value of this key is cut off' end
    local code, parameter, window_us, units, generation, length, body = unpack(HEAD_FORMAT, value, offset)
    local edge = floor(code / EDGE_FACTOR)
    code = code - edge * EDGE_FACTOR
    offset = body + length
    if offset - 1 > size and not complete then
      value, complete = call('GET', name), true
      size = #value
    end
    if offset - 1 > size or code < SLIDING_LOG or code > SORTED_SET then
      return nil, 'SLIDEGATE damaged: a value of this key is cut off or unknown'
    end
    local state = algorithm(code).read(value, body, length)
    if not state then return nil, 'SLIDEGATE damaged: a value of this key does not add up' end
    state.code, state.edge, state.parameter, state.window_us = code, edge, parameter, window_us
    state.units, state.generation, state.bucket_us = units, generation, window_us
    if code == SLIDING_BUCKETS then state.bucket_us = -floor(-window_us / parameter) end
    states[index] = state
  end
  if count == 0 then return nil, 'SLIDEGATE damaged: a value of this key has no limits' end
  if states[1].ring then algorithm(SLIDING_LOG).place_rings(key, states, offset) end
  if states[1].code == SORTED_SET then algorithm(SORTED_SET).name_sets(key, states) end
  return states
end

-- How long a state must be stored. `reset_after_us` is text where a double is not exact.
local function life(reset_after_us, window_us)
  if window_us < MARGIN_MIN_US then window_us = MARGIN_MIN_US end
  if type(reset_after_us) ~= 'number' then return EXACT end
  return reset_after_us + window_us
end

-- A time to live in milliseconds, as text.
local function ttl(life_us)
  if injected then life_us = LIFE_INJECTED_US elseif life_us > LIFE_MAX_US then life_us = LIFE_MAX_US end
  return string.format('%d', -floor(-life_us / 1000))
end

local function head(state, length)
  return pack(HEAD_FORMAT, state.code + EDGE_FACTOR * state.edge, state.parameter, state.window_us, state.units,
    state.generation, length)
end

-- Stores a limit with its state, as the one last charged.
local function set_limit(state, limit)
  state.units, state.parameter, state.edge = limit.units, limit.parameter, limit.edge
end

-- Writes the states of a key.
local function write(key, states, life_us)
  local count = states.count
  local first = states[1]
  if first.ring and algorithm(SLIDING_LOG).write_rings(key, states, ttl(life_us)) then return end
  local parts = { pack(MAGIC_FORMAT, MAGIC, VERSION, count) }
  for index = 1, count do
    local state = states[index]
    local body = algorithm(state.code).write(state)
    parts[2 * index], parts[2 * index + 1] = head(state, #body), body
  end
  local text = table.concat(parts)
  if #text > NEAR_BYTES and first.code == SLIDING_LOG then text = algorithm(SLIDING_LOG).long(states) end
  if first.code ~= SORTED_SET then
    call('SET', key, text, 'PX', ttl(life_us))
    if states.from_sets then algorithm(SORTED_SET).delete_sets(key, states.leftover_sets) end
  else
    call('SET', algorithm(SORTED_SET).value_name(key), text, 'PX', ttl(life_us))
    algorithm(SORTED_SET).flush(key, states, ttl(life_us))
  end
end

-- Charges units that may be far above the limit. Those that would raise the use above USED_MAX are not counted.
local function charge_excess(state, limit, now_us, units)
  local functions = algorithm(state.code)
  local used = functions.usage(state, limit, now_us)
  if used > USED_MAX then used = USED_MAX end
  if units > USED_MAX - used then units = USED_MAX - used end
  if units > 0 then
    functions.charge(state, limit, now_us, units)
    set_limit(state, limit)
  end
end

-- The state of a key that was never charged.
local function new_state(key, limit, generation)
  local state = algorithm(limit.code).new(limit, key)
  state.code, state.edge, state.parameter, state.window_us = limit.code, limit.edge, limit.parameter, limit.window_us
  state.units, state.generation, state.bucket_us = limit.units, generation, limit.bucket_us
  return state
end

-- The largest use of any limit, under the limits that the states were stored with; `at_us` nil: at the last charge.
local function used_max(states, at_us)
  local most = 0
  for index = 1, states.count do
    local state = states[index]
    local used = algorithm(state.code).usage(state, state, at_us)
    if used > most then most = used end
  end
  return most
end

-- Writes the states of a key that were not charged: the use decides how long they are stored.
local function write_as_used(key, states)
  local longest_us = 0
  for index = 1, states.count do
    local state = states[index]
    local _, reset_after_us = algorithm(state.code).usage(state, state, now_us)
    local life_us = life(reset_after_us, state.window_us)
    if life_us > longest_us then longest_us = life_us end
  end
  write(key, states, longest_us)
end

local function same_geometry(state, limit)
  return state.code == limit.code and state.window_us == limit.window_us and state.bucket_us == limit.bucket_us
end

-- Carries states over to changed limits. Each limit takes the state of its own geometry. A limit that finds none begins
-- at `at_us` with the largest use of all as of `used_at_us`. Sorted sets that no limit takes are leftover.
local function carried_over(key, states, limits, at_us, used_at_us, generation)
  local carried, leftover_sets = { count = limits.count }, {}
  for older = 1, states.count do
    if states[older].ring then algorithm(SLIDING_LOG).gather(states[older]) end
    leftover_sets[states[older]] = states[older].set
  end
  local used = used_max(states, used_at_us)
  for index = 1, limits.count do
    local limit = limits[index]
    for older = 1, states.count do
      local state = states[older]
      if same_geometry(state, limit) then
        carried[index], leftover_sets[state] = state, nil
        break
      end
    end
    if not carried[index] then
      local state = new_state(key, limit, generation)
      charge_excess(state, limit, at_us, used)
      carried[index] = state
    end
  end
  carried.leftover_sets, carried.from_sets = leftover_sets, states[1].code == SORTED_SET
  return carried
end

-- Whether every state has the geometry of the limit at its index.
local function match(states, limits)
  if states.count ~= limits.count then return false end
  for index = 1, limits.count do
    if not same_geometry(states[index], limits[index]) then return false end
  end
  return true
end

-- The states of the limits. Where the stored ones do not match, a limit that finds none of its geometry begins with the
-- largest use of all at the last charge, stamped at the latest instant at which that charge may have been made. All of
-- them get a new generation, because earlier receipts no longer fit.
local function states_of(key, states, limits, generation)
  if not states then
    states = { count = limits.count }
    for index = 1, limits.count do states[index] = new_state(key, limits[index], generation) end
    return states
  end
  if match(states, limits) then return states end
  local charged_by_us = -EXACT
  for index = 1, states.count do
    local state = states[index]
    local by_us = algorithm(state.code).charged_by_us(state)
    if by_us > charged_by_us then charged_by_us = by_us end
  end
  states = carried_over(key, states, limits, charged_by_us, nil, generation)
  for index = 1, states.count do states[index].generation = generation end
  return states
end

-- The limits of a charge from ARGV[first]: form, then units, window and, of a receipt, place of every limit. And the
-- index after them.
local function limits_from(first, with_places)
  local name, parameter, edge_name, count, shadow = ARGV[first], 0, '', 1, ''
  if string.find(name, ',', 1, true) then
    name, parameter, edge_name, count, shadow =
      string.match(name, '^([^,]+),(%d+),?([a-z]*),?(%d*),?([a-z]*)$')
    parameter, count = tonumber(parameter), tonumber(count) or 1
  end
  local code, edge, other_unit_us = nil, 0, nil
  if name == 'sliding-log' then code = SLIDING_LOG
  elseif name == 'compact-log' then code = COMPACT_LOG
  elseif name == 'sliding-buckets' then code = SLIDING_BUCKETS
  elseif name == 'sliding-counter' then code = SLIDING_COUNTER
  elseif name == 'fixed-window' then code = FIXED_WINDOW
  elseif name == 'gcra' then code = GCRA
  elseif name == 'sliding-log/sorted-set' then code = SORTED_SET
  elseif name == 'sliding-log/sorted-set/ms' then code, other_unit_us = SORTED_SET, MILLISECOND_US
  elseif name == 'sliding-log/sorted-set/s' then code, other_unit_us = SORTED_SET, SECOND_US
  end
  if edge_name == 'interpolated' then edge = EDGE_INTERPOLATED end
  if edge_name == 'dropped' then edge = EDGE_DROPPED end
  local limits = { count = count, shadow = shadow == 'shadow', other_unit_us = other_unit_us }
  first = first + 1
  for index = 1, count do
    local units, window_us = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
    -- Without buckets it is the window.
    local bucket_us = window_us
    if code == SLIDING_BUCKETS then bucket_us = -floor(-window_us / parameter) end
    limits[index] = {
      code = code, parameter = parameter, edge = edge, units = units, window_us = window_us, bucket_us = bucket_us,
    }
    first = first + 2
    if with_places then
      local function byte_of(digits) return string.char(tonumber(digits, 16)) end
      local limit, place = limits[index], string.gsub(ARGV[first], '%x%x', byte_of)
      local generation, s, us = unpack('>I6I5I3', place)
      limit.generation, limit.stamp, limit.place = generation, (s - origin) * SECOND_US + us, place
      first = first + 1
    end
  end
  return limits, first
end
