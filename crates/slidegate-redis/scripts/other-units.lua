-- Sorted sets of another limiter with scores in milliseconds or seconds. They are taken over where the form of a rule
-- names that unit: sliding-log/sorted-set/ms, sliding-log/sorted-set/s.
--
-- Scores of another unit are lower than ours. So all of them come before ours, oldest first, and ranks and counts also
-- work on a set that holds both. That bounds the work of a call: each write converts up to MEMBERS_MAX members, the
-- newest first, and removes up to as many that have left. Until the last is converted, `unit_us` of the state is the
-- microseconds of a unit, and the body has 19 bytes: 5 + 3 the newest stamp, 5 + 3 the instant of the first write, 3
-- `unit_us`.
--
-- A score names the millisecond or second of a request. The request counts as made at its end, so that no window is
-- exceeded, but not after the first write, because it was made before. Until that write the set has no value beside it:
-- `newest` is the beginning of the newest unit, and `newest_end_us` its end.
local MEMBERS_MAX = 1000 -- per ZADD, ZREM and write: Lua passes no more than some thousand arguments
local MIXED_BODY_BYTES, MIXED_FORMAT = 19, '>I5I3I5I3I3'
local MICROSECONDS_MIN, OURS = 1e15, '1000000000000000' -- the year 2001: lower scores are milliseconds or seconds
local BELOW_OURS = '(1000000000000000'

-- The stamp that a score stands for.
local function stamp_of(state, score)
  if not state.unit_us or score >= MICROSECONDS_MIN then return score end
  local end_us = (floor(score) + 1) * state.unit_us - 1
  if state.taken_us and end_us > state.taken_us then return state.taken_us end
  return end_us
end

-- The lowest score of another unit whose stamp is after an instant.
local function first_after(state, at_us)
  if state.taken_us and at_us >= state.taken_us then return OURS end
  local next_us = at_us + 1
  return string.format('%.0f', (next_us - next_us % state.unit_us) / state.unit_us)
end

-- How many members have a score of another unit with a stamp after an instant; of all of them without one.
local function other_units(state, at_us)
  return call('ZCOUNT', state.set, at_us and first_after(state, at_us) or '-inf', BELOW_OURS)
end

-- The state of a set that has no value beside it. Or nil and why it is none of this unit.
local function of_another_limiter(key, newest, limits)
  local unit_us = newest < MICROSECONDS_MIN and limits.other_unit_us or 1
  local state = { newest = newest, adds = {}, removed = 0, members_named = 0, stored = true, set = key }
  if unit_us > 1 then
    state.newest, state.unit_us = floor(newest) * unit_us, unit_us
    state.newest_end_us = stamp_of(state, newest)
  end
  if state.newest < MICROSECONDS_MIN or state.newest >= ORIGIN_MOVES_S * SECOND_US then
    return nil, 'SLIDEGATE foreign: the scores of the sorted set of this key are not microseconds since 1970'
      .. (limits.other_unit_us and ', and not of the unit that take_over of the rule names'
        or '; if another limiter wrote them, stop it and set take_over of the rule to ms or s')
  end
  if limits.count > 1 then
    return nil, 'SLIDEGATE foreign: this key has the sorted set of another limiter, which a rule of several limits '
      .. 'does not take over'
  end
  return state
end

-- Called before the first change of a set that is taken over.
local function take(state, at_us)
  if not state.newest_end_us then return end
  local newest_us, taken_us = state.newest_end_us, state.newest
  if at_us > taken_us then taken_us = at_us end
  if newest_us > taken_us then newest_us = taken_us end
  state.newest, state.taken_us, state.newest_end_us = newest_us, taken_us, nil
end

-- Removes members that have left, if the state prunes, and converts others.
local function convert(state)
  local set = state.set
  if state.prune_to then
    local gone = call('ZCOUNT', set, '-inf', '(' .. first_after(state, state.prune_to))
    if gone > MEMBERS_MAX then gone = MEMBERS_MAX end
    if gone > 0 then call('ZREMRANGEBYRANK', set, 0, gone - 1) end
  end
  local count = other_units(state)
  local first = count - MEMBERS_MAX
  if first < 0 then first = 0 end
  if count > 0 then
    local members, arguments = call('ZRANGE', set, first, count - 1, 'WITHSCORES'), {}
    for index = 1, #members, 2 do
      arguments[index] = string.format('%.0f', stamp_of(state, tonumber(members[index + 1])))
      arguments[index + 1] = members[index]
    end
    call('ZADD', set, _G.unpack(arguments))
  end
  return first == 0
end
