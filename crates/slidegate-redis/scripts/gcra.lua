-- gcra: the token bucket as one timestamp: a backlog that drains by the limit per window.
--
-- The backlog is counted in unit-microseconds, in which one unit is exactly the window and one microsecond drains
-- exactly the limit: a wide number, high x 2^48 + low. What drains is the limit that the state was last kept under.
--
-- Body, 27 bytes: 5 + 3 when the backlog was what it says, 6 + 6 the backlog, 7 units given back so far, modulo 2^53.
-- Place, 32 bytes: 5 + 3 when it was charged, 16 the backlog then, 8 units given back by then.
local function product(a, b)
  local exact = a * b
  if exact < EXACT then
    local high = floor(exact / WHOLE)
    return high, exact - high * WHOLE
  end
  return wide().mul(a, b)
end

-- A wide number less what drains from an instant, in seconds and microseconds, until `at`.
local function drained(high, low, units, s, us, at)
  local elapsed = at - ((s - origin) * 1e6 + us)
  if elapsed <= 0 or (high == 0 and low == 0) then return high, low end
  if units * elapsed >= 1.5e29 then return 0, 0 end
  if elapsed < 4e15 then return less(high, low, product(units, elapsed)) end
  -- A backlog of millennia: the time that has passed is not exact as one number.
  local until_s, until_us = instant(at)
  s, us = until_s - s, until_us - us
  while s > 4e9 do
    high, low = less(high, low, product(units, 4e15))
    s = s - 4e9
  end
  return less(high, low, product(units, s * 1e6 + us))
end

local function backlog_at(state, at)
  if not at then return state.high, state.low end
  return drained(state.high, state.low, state.units, state.s, state.us, at)
end

-- ceil(wide / divisor), wide.
local function ceil_div(high, low, divisor)
  if high < 32 then
    local exact = -floor(-(high * WHOLE + low) / divisor)
    high = floor(exact / WHOLE)
    return high, exact - high * WHOLE
  end
  local qh, ql, rest = wide().div(high, low, divisor)
  if rest > 0 then return more(qh, ql, 0, 1) end
  return qh, ql
end

-- Units, rounded up.
local function units_of(limit, high, low)
  local qh, ql = ceil_div(high, low, limit.window)
  return qh * WHOLE + ql
end

-- Microseconds until the backlog has drained to a target: a number, or 6 + 6 bytes where a double is not exact.
local function drains_to(state, at, th, tl)
  local high, low = backlog_at(state, at)
  high, low = less(high, low, th, tl)
  if high == 0 and low == 0 then return 0 end
  high, low = ceil_div(high, low, state.units)
  local begins = at and state.as_of - at or 0
  if begins < 0 then begins = 0 end
  if high < 16 then return high * WHOLE + low + begins end
  return pack('>I6I6', more(high, low, 0, begins))
end

local function usage(state, limit, at)
  local high, low = backlog_at(state, at)
  return units_of(limit, high, low), drains_to(state, at, 0, 0)
end

local function set(state, limit, at, high, low)
  if state.units ~= limit.units then
    -- How fast the stretches of earlier charges drain is no longer known: none can be refunded.
    local bh, bl = backlog_at(state, at)
    state.given_back = (state.given_back + units_of(limit, bh, bl)) % EXACT
    state.units = limit.units
  end
  state.high, state.low = high, low
  if at > state.as_of then
    state.as_of = at
    state.s, state.us = instant(at)
  end
end

local function credit(state, limit, at, units)
  local high, low = backlog_at(state, at)
  local before = units_of(limit, high, low)
  if units > before then units = before end
  local gh, gl = product(units, limit.window)
  if gh > high or (gh == high and gl > low) then gh, gl = high, low end
  if gh == 0 and gl == 0 then return 0 end
  high, low = less(high, low, gh, gl)
  set(state, limit, at, high, low)
  state.given_back = (state.given_back + units_of(limit, gh, gl)) % EXACT
  return before - units_of(limit, high, low)
end

return {
  new = function() return { as_of = -origin * 1e6, s = 0, us = 0, high = 0, low = 0, given_back = 0 } end,

  read = function(value, body, length)
    if length ~= 27 then return nil end
    local s, us, high, low, given_back = unpack('>I5I3I6I6I7', value, body)
    return { as_of = (s - origin) * 1e6 + us, s = s, us = us, high = high, low = low, given_back = given_back }
  end,

  write = function(state)
    return pack('>I5I3I6I6I7', state.s, state.us, state.high, state.low, state.given_back)
  end,

  usage = usage,

  decide = function(state, limit, at, cost)
    local used, reset = usage(state, limit, at)
    return used, reset, drains_to(state, at, product(limit.units - cost, limit.window))
  end,

  charge = function(state, limit, at, cost)
    local high, low = backlog_at(state, at)
    high, low = more(high, low, product(cost, limit.window))
    set(state, limit, at, high, low)
    local place = pack('>I5I3I4I6I6I8', state.s, state.us, 0, high, low, state.given_back)
    return place, usage(state, limit, at)
  end,

  -- Gives back the whole units of the charge that have not drained yet. What was given back since may have moved
  -- its stretch towards the present, and is taken to have.
  refund = function(state, at, charged, units)
    if state.units ~= charged.units then return 0 end
    local s, us, _, high, low, given_back = unpack('>I5I3I4I6I6I8', charged.place, 7)
    local effective = at
    if state.as_of > effective then effective = state.as_of end
    high, low = drained(high, low, state.units, s, us, effective)
    local moved = (state.given_back - given_back) % EXACT
    if moved * state.window >= 1.5e29 then return 0 end
    high, low = less(high, low, product(moved, state.window))
    local bh, bl = backlog_at(state, at)
    if bh < high or (bh == high and bl < low) then high, low = bh, bl end
    local whole
    if high < 32 then
      whole = floor((high * WHOLE + low) / state.window)
    else
      local qh, ql = wide().div(high, low, state.window)
      whole = qh * WHOLE + ql
    end
    if units > whole then units = whole end
    if units == 0 then return 0 end
    return credit(state, state, at, units)
  end,

  credit = credit,

  change = function(state, limit, at)
    local high, low = backlog_at(state, at)
    set(state, limit, at, high, low)
  end,

  charged_by = function(state) return state.as_of end,
}
