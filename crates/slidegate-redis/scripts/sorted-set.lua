-- sliding-log/sorted-set: the exact log in the classical form, one member of a sorted set per unit. The algorithm is
-- also written in fast-sorted-set.lua, sliding-log.lua, fast-sliding-log.lua,
-- crates/slidegate/src/algorithm/sliding_log.rs and testing/model/sliding_log.rs; change all six.
--
-- The units of the limit with the longest window are the members of the sorted set KEY. Each other limit has a set
-- KEY%WINDOW, window in microseconds. The score is the instant in microseconds, which a double holds until the year
-- 2252; the member is NONCE:INDEX of the call that charged it. A value KEY%state beside them holds the geometry and, as
-- its body, 8 bytes: 5 + 3 the newest stamp, which stays when the last unit has left. In a key or a rule's name digits
-- follow every %, so no state has such a name.
--
-- A set KEY of microseconds without a value belongs to another limiter, and is taken over as it is. Of other units see
-- other-units.lua. A packed value KEY is taken over too, and the packed layout takes over the sets.
-- Place, 8 bytes: 5 + 3 the stamp.
-- TTL    that of the value
-- Commands to decide: GETRANGE, ZCOUNT, and for a wait ZRANGE; where there is no value TYPE, GETRANGE and ZCARD. To
-- charge: SET, ZADD (one per 1,000 units), ZREMRANGEBYSCORE, PEXPIRE. Where limits change, also DEL, EXISTS and RENAME.
--
-- A set is only written after the value: a full Redis refuses a script whose first write is SET, but not one that first
-- removes something. Until then a state collects the changes: `adds` (stamp, units, ...), `prune_to` a score,
-- `remove_members`, `remove_ranks`, and `removed`, how many of the removed units counted. `stored`: the set exists.
local format, spread = string.format, _G.unpack
local BODY_BYTES, BODY_FORMAT = 8, '>I5I3'
local NUMBER_FORMAT, ABOVE_FORMAT, SUFFIX_FORMAT = '%.0f', '(%.0f', '%%%.0f' -- as ZCOUNT and the names of sets need it
local UNITS_MAX = 1000000 -- of one charge

local function value_name(key) return key .. '%state' end

-- The names of the sets of states or limits.
local function set_names(key, all)
  local longest, names = 1, {}
  for index = 1, all.count do
    if all[index].window_us > all[longest].window_us then longest = index end
    names[index] = key .. format(SUFFIX_FORMAT, all[index].window_us)
  end
  names[longest] = key
  return names
end

-- The exclusive start of the window that ends at `now_us`, or at the newest stamp if that is later.
local function window_start_us(state, limit, now_us)
  local effective_us = state.newest
  if now_us and now_us > effective_us then effective_us = now_us end
  return effective_us - limit.window_us
end

-- Units in use, and the start of their window.
local function used_since(state, limit, now_us)
  local cut_us, used = window_start_us(state, limit, now_us), 0
  if state.stored then
    local above_us = cut_us
    if state.unit_us then
      used = other_units(state, cut_us)
      if above_us < MICROSECONDS_MIN then above_us = MICROSECONDS_MIN - 1 end
    end
    used = used + call('ZCOUNT', state.set, format(ABOVE_FORMAT, above_us), '+inf') - state.removed
  end
  for index = 1, #state.adds, 2 do
    if state.adds[index] > cut_us then used = used + state.adds[index + 1] end
  end
  return used, cut_us
end

local function usage(state, limit, now_us)
  local used = used_since(state, limit, now_us)
  if used == 0 then return 0, 0 end
  return used, (state.newest_end_us or state.newest) + limit.window_us - (now_us or 0)
end

-- Called before anything is written. Raises a string, because Redis before 7 loses the text of a raised table.
local function refuse_large(units)
  if units > UNITS_MAX or origin > 0 then
    error('SLIDEGATE large: a sorted set keeps one member per unit, at most 1000000 of one charge, '
      .. 'and no time after 2252; use the packed layout')
  end
end

-- The stamp of the member at a rank of the set; -1 is the newest.
local function stamp_at(state, rank)
  return stamp_of(state, tonumber(call('ZRANGE', state.set, rank, rank, 'WITHSCORES')[2]))
end

local function add_members(state, stamp, units)
  local arguments, filled, score = {}, 0, format(NUMBER_FORMAT, stamp)
  for unit = 1, units do
    state.members_named = state.members_named + 1
    arguments[filled + 1], arguments[filled + 2] = score, format('%s:%d', ARGV[2], state.members_named)
    filled = filled + 2
    if filled == 2 * MEMBERS_MAX or unit == units then
      call('ZADD', state.set, spread(arguments, 1, filled))
      filled = 0
    end
  end
end

-- Applies the collected changes of a state to its set.
local function update(state)
  local members, remove_ranks = state.remove_members, state.remove_ranks
  if members then
    for index = 1, #members, MEMBERS_MAX do
      local last = index + MEMBERS_MAX - 1
      if last > #members then last = #members end
      call('ZREM', state.set, spread(members, index, last))
    end
  end
  if remove_ranks then call('ZREMRANGEBYRANK', state.set, remove_ranks[1], remove_ranks[2]) end
  for index = 1, #state.adds, 2 do add_members(state, state.adds[index], state.adds[index + 1]) end
  if state.unit_us and not convert(state) then return end
  if state.prune_to then call('ZREMRANGEBYSCORE', state.set, '-inf', format(NUMBER_FORMAT, state.prune_to)) end
end

return {
  new = function(limit, key)
    -- A new state deletes the set of its name. ZCARD fails if the name holds another program's value of another type.
    call('ZCARD', key .. format(SUFFIX_FORMAT, limit.window_us))
    return { newest = -origin * SECOND_US, adds = {}, removed = 0, members_named = 0 }
  end,

  value_name = value_name,

  -- The state of another limiter's set, which has no value of ours; nil if there is none. Or nil and why it cannot be
  -- read.
  take_over = function(key, limits)
    if call('TYPE', key).ok ~= 'zset' then return nil end
    local newest, limit = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]), limits[1]
    local state, why = of_another_limiter(key, newest, limits)
    if why then return nil, why end
    state.code, state.edge, state.parameter, state.window_us = SORTED_SET, 0, 0, limit.window_us
    state.bucket_us, state.units, state.generation = limit.bucket_us, limit.units, tonumber(ARGV[2])
    return { count = 1, state }
  end,

  name_sets = function(key, states)
    local names = set_names(key, states)
    for index = 1, states.count do states[index].set = names[index] end
  end,

  read = function(value, body, length)
    if length ~= BODY_BYTES and length ~= MIXED_BODY_BYTES then return nil end
    local s, us = unpack(BODY_FORMAT, value, body)
    local state = { newest = (s - origin) * SECOND_US + us, adds = {}, removed = 0, members_named = 0, stored = true }
    if length == MIXED_BODY_BYTES then
      s, us, state.unit_us = select(3, unpack(MIXED_FORMAT, value, body))
      state.taken_us = (s - origin) * SECOND_US + us
    end
    return state
  end,

  write = function(state)
    take(state, now_us)
    local s, us = stored_instant(state.newest)
    if not state.unit_us or other_units(state) <= MEMBERS_MAX then return pack(BODY_FORMAT, s, us) end
    local taken_s, taken_us = stored_instant(state.taken_us)
    return pack(MIXED_FORMAT, s, us, taken_s, taken_us, state.unit_us)
  end,

  usage = usage,

  decide = function(state, limit, now_us, cost)
    refuse_large(cost)
    local used, cut_us = used_since(state, limit, now_us)
    local reset_after_us, missing = 0, used + cost - limit.units
    if used > 0 then reset_after_us = (state.newest_end_us or state.newest) + limit.window_us - now_us end
    if missing <= 0 then return used, reset_after_us, 0 end
    if not state.stored then
      for index = 1, #state.adds, 2 do
        if state.adds[index] > cut_us then missing = missing - state.adds[index + 1] end
        if missing <= 0 then return used, reset_after_us, state.adds[index] + limit.window_us - now_us end
      end
    end
    -- The cost passes when as many units are left as fit beside it.
    return used, reset_after_us, stamp_at(state, cost - limit.units - 1) + limit.window_us - now_us
  end,

  charge = function(state, limit, now_us, cost)
    refuse_large(cost)
    take(state, now_us)
    local used, cut_us = used_since(state, limit, now_us)
    local stamp = state.newest
    if now_us > stamp then stamp = now_us end
    state.newest, state.prune_to = stamp, cut_us
    state.adds[#state.adds + 1] = stamp
    state.adds[#state.adds + 1] = cost
    return pack(BODY_FORMAT, stored_instant(stamp)), used + cost, stamp + limit.window_us - now_us
  end,

  refund = function(state, now_us, charged, units)
    if charged.stamp <= window_start_us(state, state, now_us) then return 0 end
    local score = format(NUMBER_FORMAT, charged.stamp)
    local members = call('ZRANGEBYSCORE', state.set, score, score, 'LIMIT', 0, units)
    units = #members
    if units == 0 then return 0 end
    state.remove_members, state.removed = members, units
    -- The newest stamp of the units that stay. If none stays, it does not change.
    local size = call('ZCARD', state.set)
    if size > units and stamp_at(state, -1) == charged.stamp and call('ZCOUNT', state.set, score, score) == units then
      state.newest = stamp_at(state, -1 - units)
    end
    return units
  end,

  credit = function(state, limit, now_us, units)
    take(state, now_us)
    local used = used_since(state, limit, now_us)
    if units > used then units = used end
    if units == 0 then return 0 end
    if not state.stored then
      -- The state began in this call, with one charge.
      state.adds[2] = state.adds[2] - units
      return units
    end
    local first = call('ZCARD', state.set) - used
    state.remove_ranks, state.removed = { first, first + units - 1 }, units
    if units == used and first > 0 then state.newest = stamp_at(state, first - 1) end
    return units
  end,

  charged_by_us = function(state) return state.newest end,

  refuse_large = refuse_large,

  -- Applies the collected changes of all states, and gives the sets the TTL of the value.
  flush = function(key, states, ttl)
    local names = set_names(key, states)
    for _, set in pairs(states.leftover_sets or {}) do call('DEL', set) end
    -- First the set that leaves the name KEY, then the one that gets it.
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
      if not state.stored then call('DEL', state.set) end
      update(state)
      call('PEXPIRE', state.set, ttl)
    end
  end,

  -- Deletes the sets that a packed value has replaced.
  delete_sets = function(key, sets)
    call('DEL', value_name(key))
    for _, set in pairs(sets) do
      if set ~= key then call('DEL', set) end
    end
  end,
}
