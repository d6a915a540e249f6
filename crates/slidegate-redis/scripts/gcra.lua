-- gcra: the token bucket as one timestamp. Also written in fast-gcra.lua, crates/slidegate/src/algorithm/gcra.rs and
-- testing/model/gcra.rs; change all four.
--
-- The backlog drains by the limit per window. It is counted in unit-microseconds, in which one unit is exactly the
-- window and one microsecond drains exactly the limit: a wide number, high x 2^48 + low. The limit that drains,
-- `drained_per_window` in Rust, is the one last stored: state.units.
--
-- Body, 27 bytes: 5 + 3 the instant of the backlog, 6 + 6 the backlog, 7 units given back so far, modulo 2^53.
-- Place, 32 bytes: 5 + 3 the instant of the charge, 16 the backlog then, 8 units given back by then.
local BODY_BYTES, BODY_FORMAT, PLACE_FORMAT = 27, '>I5I3I6I6I7', '>I5I3I4I6I6I8'
local PLACE_START = 7 -- after the generation
local HIGH_EXACT = 32 -- 2^53 / 2^48: below, high x 2^48 + low is exact as one double
local BACKLOG_MAX = 1.5e29 -- above 2^96, which 6 + 6 bytes cannot hold, and below 2^100, up to which products are exact
local STEP_S = 4e9 -- 127 years: in longer steps microseconds could pass 2^53

local function product(a, b)
  local exact = a * b
  if exact < EXACT then
    local high = floor(exact / WIDE_BASE)
    return high, exact - high * WIDE_BASE
  end
  return wide().mul(a, b)
end

-- A backlog less the units that drain from an instant, in seconds and microseconds, until `now_us`.
local function drained(high, low, units, s, us, now_us)
  local elapsed_us = now_us - ((s - origin) * SECOND_US + us)
  if elapsed_us <= 0 or (high == 0 and low == 0) then return high, low end
  if units * elapsed_us >= BACKLOG_MAX then return 0, 0 end
  if elapsed_us < STEP_S * SECOND_US then return saturating_sub(high, low, product(units, elapsed_us)) end
  -- A backlog of millennia: the elapsed time is not exact as one number.
  local until_s, until_us = stored_instant(now_us)
  s, us = until_s - s, until_us - us
  while s > STEP_S do
    high, low = saturating_sub(high, low, product(units, STEP_S * SECOND_US))
    s = s - STEP_S
  end
  return saturating_sub(high, low, product(units, s * SECOND_US + us))
end

-- `now_us` nil: at the last charge.
local function backlog_at(state, now_us)
  if not now_us then return state.backlog_high, state.backlog_low end
  return drained(state.backlog_high, state.backlog_low, state.units, state.as_of_s, state.as_of_part_us, now_us)
end

-- ceil(wide / divisor), wide.
local function div_ceil(high, low, divisor)
  if high < HIGH_EXACT then
    local exact = -floor(-(high * WIDE_BASE + low) / divisor)
    high = floor(exact / WIDE_BASE)
    return high, exact - high * WIDE_BASE
  end
  local qh, ql, rest = wide().div(high, low, divisor)
  if rest > 0 then return add(qh, ql, 0, 1) end
  return qh, ql
end

-- The units of a backlog, rounded up.
local function units_of(limit, high, low)
  local qh, ql = div_ceil(high, low, limit.window_us)
  return qh * WIDE_BASE + ql
end

-- Microseconds until the backlog has drained to a target: a number, or decimal text where a double is not exact.
local function drains_to_us(state, now_us, target_high, target_low)
  local high, low = backlog_at(state, now_us)
  high, low = saturating_sub(high, low, target_high, target_low)
  if high == 0 and low == 0 then return 0 end
  high, low = div_ceil(high, low, state.units)
  local begins_us = now_us and state.as_of_us - now_us or 0
  if begins_us < 0 then begins_us = 0 end
  high, low = add(high, low, product(1, begins_us))
  if high < HIGH_EXACT then return high * WIDE_BASE + low end
  return decimal(high, low)
end

local function usage(state, limit, now_us)
  local high, low = backlog_at(state, now_us)
  return units_of(limit, high, low), drains_to_us(state, now_us, 0, 0)
end

local function set_backlog(state, limit, now_us, high, low)
  if state.units ~= limit.units then
    -- Earlier charges drained at another speed, and how far is no longer known: none can be refunded.
    local backlog_high, backlog_low = backlog_at(state, now_us)
    state.given_back = (state.given_back + units_of(limit, backlog_high, backlog_low)) % EXACT
    state.units = limit.units
  end
  state.backlog_high, state.backlog_low = high, low
  if now_us > state.as_of_us then
    state.as_of_us = now_us
    state.as_of_s, state.as_of_part_us = stored_instant(now_us)
  end
end

local function credit(state, limit, now_us, units)
  local high, low = backlog_at(state, now_us)
  local used_before = units_of(limit, high, low)
  if units > used_before then units = used_before end
  local given_high, given_low = product(units, limit.window_us)
  if given_high > high or (given_high == high and given_low > low) then given_high, given_low = high, low end
  if given_high == 0 and given_low == 0 then return 0 end
  high, low = saturating_sub(high, low, given_high, given_low)
  set_backlog(state, limit, now_us, high, low)
  state.given_back = (state.given_back + units_of(limit, given_high, given_low)) % EXACT
  return used_before - units_of(limit, high, low)
end

return {
  new = function()
    return {
      as_of_us = -origin * SECOND_US, as_of_s = 0, as_of_part_us = 0, backlog_high = 0, backlog_low = 0, given_back = 0,
    }
  end,

  read = function(value, body, length)
    if length ~= BODY_BYTES then return nil end
    local s, us, high, low, given_back = unpack(BODY_FORMAT, value, body)
    return {
      as_of_us = (s - origin) * SECOND_US + us, as_of_s = s, as_of_part_us = us, backlog_high = high,
      backlog_low = low, given_back = given_back,
    }
  end,

  write = function(state)
    return pack(BODY_FORMAT, state.as_of_s, state.as_of_part_us, state.backlog_high, state.backlog_low,
      state.given_back)
  end,

  usage = usage,

  decide = function(state, limit, now_us, cost)
    local used, reset_after_us = usage(state, limit, now_us)
    return used, reset_after_us, drains_to_us(state, now_us, product(limit.units - cost, limit.window_us))
  end,

  charge = function(state, limit, now_us, cost)
    local high, low = backlog_at(state, now_us)
    high, low = add(high, low, product(cost, limit.window_us))
    set_backlog(state, limit, now_us, high, low)
    local place = pack(PLACE_FORMAT, state.as_of_s, state.as_of_part_us, 0, high, low, state.given_back)
    return place, usage(state, limit, now_us)
  end,

  -- Gives back the whole units of the charge that have not drained yet. Units given back since may have moved the
  -- charge towards the present; it counts as moved.
  refund = function(state, now_us, charged, units)
    if state.units ~= charged.units then return 0 end
    local s, us, _, high, low, given_back = unpack(PLACE_FORMAT, charged.place, PLACE_START)
    local effective_us = now_us
    if state.as_of_us > effective_us then effective_us = state.as_of_us end
    high, low = drained(high, low, state.units, s, us, effective_us)
    local moved = (state.given_back - given_back) % EXACT
    if moved * state.window_us >= BACKLOG_MAX then return 0 end
    high, low = saturating_sub(high, low, product(moved, state.window_us))
    local backlog_high, backlog_low = backlog_at(state, now_us)
    if backlog_high < high or (backlog_high == high and backlog_low < low) then
      high, low = backlog_high, backlog_low
    end
    local whole
    if high < HIGH_EXACT then
      whole = floor((high * WIDE_BASE + low) / state.window_us)
    else
      local qh, ql = wide().div(high, low, state.window_us)
      whole = qh * WIDE_BASE + ql
    end
    if units > whole then units = whole end
    if units == 0 then return 0 end
    return credit(state, state, now_us, units)
  end,

  credit = credit,

  change = function(state, limit, now_us)
    local high, low = backlog_at(state, now_us)
    set_backlog(state, limit, now_us, high, low)
  end,

  charged_by_us = function(state) return state.as_of_us end,
}
