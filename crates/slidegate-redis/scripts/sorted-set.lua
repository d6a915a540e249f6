-- sliding-log/sorted-set: the exact log in the classical form, one member of a sorted set per unit.
--
-- The units of the limit with the longest window are the members of the sorted set KEY; each of the others has a set
-- KEY%WINDOW, window in microseconds. Score in microseconds, which a double holds until the year 2252, member NONCE:INDEX
-- of the call that charged it. A value KEY%state beside them holds the geometry and, as its body, 8 bytes: 5 + 3 the newest
-- stamp; when nothing stands any more, the last that did. In the name of a key or a rule a % is followed by digits of its
-- own, so that no state has such a name.
--
-- A set KEY of microseconds without a value is another limiter's, and is taken over as it is. So is a packed value KEY, and
-- by the packed layout what the sets hold.
-- Place, 8 bytes: 5 + 3 the stamp.
-- TTL    that of the value
-- Commands to decide: GETRANGE, ZCOUNT, and for a wait ZCARD and ZRANGE; where there is no value TYPE, GETRANGE and ZCARD.
-- To charge: SET, ZADD (one per 1,000 units), ZREMRANGEBYSCORE, PEXPIRE. Where limits change, also DEL, EXISTS and RENAME.
--
-- A set is only written after the value: a Redis that is full lets a script remove what it likes, and then write what it
-- likes, but refuses one that begins with SET. Until then a state says what is to be done: `adds` (stamp, units, ...),
-- `pruned` up to a score, `members` and `ranks` that go, `gone` how many of them counted.
local format, spread = string.format, _G.unpack
local UNITS_MAX = 1000000
-- The year 2001: what is less are milliseconds, or seconds.
local MICROSECONDS_MIN = 1e15

local function value_name(key) return key .. '%state' end

-- The names of the sets of states or limits.
local function set_names(key, all)
  local longest, names = 1, {}
  for index = 1, all.count do
    if all[index].window > all[longest].window then longest = index end
    names[index] = key .. format('%%%.0f', all[index].window)
  end
  names[longest] = key
  return names
end

-- Bounds of what lies in the window that ends at `at`, or at the newest stamp if that is later.
local function cut_of(state, limit, at)
  local effective = state.newest
  if at and at > effective then effective = at end
  return effective - limit.window
end

local function counted(state, limit, at)
  local cut, used = cut_of(state, limit, at), 0
  if state.backed then used = call('ZCOUNT', state.set, format('(%.0f', cut), '+inf') - state.gone end
  for index = 1, #state.adds, 2 do
    if state.adds[index] > cut then used = used + state.adds[index + 1] end
  end
  return used, cut
end

local function usage(state, limit, at)
  local used = counted(state, limit, at)
  if used == 0 then return 0, 0 end
  return used, state.newest + limit.window - (at or 0)
end

-- Before anything is written. As a value, so that the reply begins with the word that says what it is.
local function refuse_large(units)
  if units > UNITS_MAX or origin > 0 then
    error(redis.error_reply('SLIDEGATE large: a sorted set keeps one member per unit, at most 1000000 of one charge, and '
      .. 'no time after 2252; use the packed layout'))
  end
end

-- Score of the member at a rank of the set.
local function score_at(state, rank)
  return tonumber(call('ZRANGE', state.set, rank, rank, 'WITHSCORES')[2])
end

local function add(state, stamp, units)
  local arguments, filled, score = {}, 0, format('%.0f', stamp)
  for unit = 1, units do
    state.named = state.named + 1
    arguments[filled + 1], arguments[filled + 2] = score, format('%s:%d', ARGV[2], state.named)
    filled = filled + 2
    if filled == 2000 or unit == units then
      call('ZADD', state.set, spread(arguments, 1, filled))
      filled = 0
    end
  end
end

-- Brings a set up to what its state says.
local function update(state)
  local members, ranks = state.members, state.ranks
  if members then
    for index = 1, #members, 1000 do
      local last = index + 999
      if last > #members then last = #members end
      call('ZREM', state.set, spread(members, index, last))
    end
  end
  if ranks then call('ZREMRANGEBYRANK', state.set, ranks[1], ranks[2]) end
  for index = 1, #state.adds, 2 do add(state, state.adds[index], state.adds[index + 1]) end
  if state.pruned then call('ZREMRANGEBYSCORE', state.set, '-inf', format('%.0f', state.pruned)) end
end

return {
  new = function(limit, key)
    -- Written anew it would be deleted: what is no sorted set is another's, which this says by failing.
    call('ZCARD', key .. format('%%%.0f', limit.window))
    return { newest = -origin * 1e6, adds = {}, gone = 0, named = 0 }
  end,

  value_name = value_name,

  -- What is there without a value of ours: the states of another limiter's set, or nothing, or why it cannot be read.
  take_over = function(key, limits)
    if call('TYPE', key).ok ~= 'zset' then return nil end
    local limit = limits[1]
    local newest = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
    if limits.count > 1 or newest < MICROSECONDS_MIN then
      return nil, 'SLIDEGATE foreign: the sorted set of this key is not in microseconds, or the rule has several limits'
    end
    return { count = 1, {
      newest = newest - origin * 1e6, adds = {}, gone = 0, named = 0, backed = true, set = key,
      code = 7, edge = 0, parameter = 0, window = limit.window, units = limit.units, generation = tonumber(ARGV[2]),
      width = limit.width,
    } }
  end,

  name_sets = function(key, states)
    local names = set_names(key, states)
    for index = 1, states.count do states[index].set = names[index] end
  end,

  read = function(value, body, length)
    if length ~= 8 then return nil end
    local s, us = unpack('>I5I3', value, body)
    return { newest = (s - origin) * 1e6 + us, adds = {}, gone = 0, named = 0, backed = true }
  end,

  write = function(state) return pack('>I5I3', instant(state.newest)) end,

  usage = usage,

  decide = function(state, limit, at, cost)
    refuse_large(cost)
    local used, cut = counted(state, limit, at)
    local reset, missing = 0, used + cost - limit.units
    if used > 0 then reset = state.newest + limit.window - at end
    if missing <= 0 then return used, reset, 0 end
    if not state.backed then
      for index = 1, #state.adds, 2 do
        if state.adds[index] > cut then missing = missing - state.adds[index + 1] end
        if missing <= 0 then return used, reset, state.adds[index] + limit.window - at end
      end
    end
    return used, reset, score_at(state, call('ZCARD', state.set) - used + missing - 1) + limit.window - at
  end,

  charge = function(state, limit, at, cost)
    refuse_large(cost)
    local used, cut = counted(state, limit, at)
    local stamp = state.newest
    if at > stamp then stamp = at end
    state.newest, state.pruned = stamp, cut
    state.adds[#state.adds + 1] = stamp
    state.adds[#state.adds + 1] = cost
    return pack('>I5I3', instant(stamp)), used + cost, stamp + limit.window - at
  end,

  refund = function(state, at, charged, units)
    if charged.stamp <= cut_of(state, state, at) then return 0 end
    local score = format('%.0f', charged.stamp)
    local members = call('ZRANGEBYSCORE', state.set, score, score, 'LIMIT', 0, units)
    units = #members
    if units == 0 then return 0 end
    state.members, state.gone = members, units
    -- The newest of those that stay; if none does, the last that did.
    local size = call('ZCARD', state.set)
    if size > units and score_at(state, -1) == charged.stamp and call('ZCOUNT', state.set, score, score) == units then
      state.newest = score_at(state, -1 - units)
    end
    return units
  end,

  credit = function(state, limit, at, units)
    local used = counted(state, limit, at)
    if units > used then units = used end
    if units == 0 then return 0 end
    if not state.backed then
      -- Begun for this call: one charge.
      state.adds[2] = state.adds[2] - units
      return units
    end
    local first = call('ZCARD', state.set) - used
    state.ranks, state.gone = { first, first + units - 1 }, units
    if units == used and first > 0 then state.newest = score_at(state, first - 1) end
    return units
  end,

  charged_by = function(state) return state.newest end,

  refuse_large = refuse_large,

  -- Brings the sets up to what the states say, and makes them last as long as the value.
  flush = function(key, states, milliseconds)
    local names = set_names(key, states)
    for _, set in pairs(states.left or {}) do call('DEL', set) end
    -- First those that make room for the one that gets the name itself.
    for pass = 1, 2 do
      for index = 1, states.count do
        local set, wanted = states[index].set, names[index]
        if set and set ~= wanted and (set == key or pass == 2) then
          if call('EXISTS', set) == 1 then call('RENAME', set, wanted) end
          states[index].set = wanted
        end
      end
    end
    for index = 1, states.count do
      local state = states[index]
      state.set = names[index]
      if not state.backed then call('DEL', state.set) end
      update(state)
      call('PEXPIRE', state.set, milliseconds)
    end
  end,

  -- Removes what is beside a value that has taken the place of sets.
  forget = function(key, sets)
    call('DEL', value_name(key))
    for _, set in pairs(sets) do
      if set ~= key then call('DEL', set) end
    end
  end,
}
