-- sliding-counter: two adjacent fixed windows, the older weighted by its overlap. Also written in
-- fast-sliding-counter.lua, crates/slidegate/src/algorithm/sliding_counter.rs and testing/model/sliding_counter.rs;
-- change all four.
--
-- Body, 22 bytes: 5 + 3 the start of the newest window that was charged, 7 units of the window before it, 7 units of
-- it.
-- Place, 8 bytes: 5 + 3 the start of the window.
local BODY_BYTES, BODY_FORMAT = 22, '>I5I3I7I7'

-- Start, previous and current count as of `now_us`, and how much of the previous window the trailing window overlaps.
-- `now_us` nil: at the last charge.
local function rolled(state, limit, now_us)
  local window_us, start_us, previous, current = limit.window_us, state.start_us, state.previous, state.current
  if not now_us then return start_us, previous, current, window_us end
  local current_us = aligned(now_us, window_us)
  if current_us > start_us then
    if current_us - start_us == window_us then previous = current else previous = 0 end
    start_us, current = current_us, 0
  end
  if now_us > start_us then return start_us, previous, current, window_us - (now_us - start_us) end
  return start_us, previous, current, window_us
end

local function usage_of(limit, now_us, start_us, previous, current, overlap_us)
  local window_us, used = limit.window_us, current
  if previous > 0 then used = used + share_rounded_up(previous, overlap_us, window_us) end
  if current > 0 then return used, start_us + 2 * window_us - now_us end
  if previous > 0 then return used, start_us + window_us - now_us end
  return 0, 0
end

return {
  new = function() return { start_us = -origin * SECOND_US, previous = 0, current = 0 } end,

  read = function(value, body, length)
    if length ~= BODY_BYTES then return nil end
    local s, us, previous, current = unpack(BODY_FORMAT, value, body)
    return { start_us = (s - origin) * SECOND_US + us, previous = previous, current = current }
  end,

  write = function(state)
    local s, us = stored_instant(state.start_us)
    return pack(BODY_FORMAT, s, us, state.previous, state.current)
  end,

  usage = function(state, limit, now_us)
    return usage_of(limit, now_us or 0, rolled(state, limit, now_us))
  end,

  decide = function(state, limit, now_us, cost)
    local start_us, previous, current, overlap_us = rolled(state, limit, now_us)
    local window_us, units, retry_after_us = limit.window_us, limit.units, 0
    local room = units - current - cost
    if room < 0 then
      -- This window alone is too full: it has to become the previous one and fade.
      retry_after_us = start_us + 2 * window_us - quotient(units - cost, window_us, current) - now_us
    elseif previous > 0 and not product_at_most(previous, overlap_us, room, window_us) then
      -- The largest overlap at which the previous window leaves enough room.
      retry_after_us = start_us + window_us - quotient(room, window_us, previous) - now_us
    end
    local used, reset_after_us = usage_of(limit, now_us, start_us, previous, current, overlap_us)
    return used, reset_after_us, retry_after_us
  end,

  charge = function(state, limit, now_us, cost)
    local start_us, previous, current, overlap_us = rolled(state, limit, now_us)
    current = current + cost
    state.start_us, state.previous, state.current = start_us, previous, current
    local used, reset_after_us = usage_of(limit, now_us, start_us, previous, current, overlap_us)
    return pack('>I5I3', stored_instant(start_us)), used, reset_after_us
  end,

  -- Units stay in the window in which they were charged: only a charge moves the state on.
  refund = function(state, now_us, charged, units)
    local stamp, window_us, count = charged.stamp, state.window_us, nil
    local start_us = rolled(state, state, now_us)
    if start_us ~= stamp and start_us ~= stamp + window_us then return 0 end
    if state.start_us == stamp then count = 'current' end
    if state.start_us == stamp + window_us then count = 'previous' end
    if not count then return 0 end
    if units > state[count] then units = state[count] end
    state[count] = state[count] - units
    return units
  end,

  credit = function(state, limit, now_us, units)
    local start_us, previous, current, overlap_us = rolled(state, limit, now_us)
    local window_us = limit.window_us
    local used_before = usage_of(limit, now_us, start_us, previous, current, overlap_us)
    if used_before == 0 then return 0 end
    if units > used_before then units = used_before end
    -- The previous window counts by its overlap only, so one unit of use is more than one of its units.
    local from_previous = previous
    if not product_at_most(previous, overlap_us, units, window_us) then
      from_previous = quotient(units, window_us, overlap_us)
    end
    local from_current = units - share_rounded_up(from_previous, overlap_us, window_us)
    if from_current > current then from_current = current end
    if state.start_us == start_us then
      state.previous, state.current = previous - from_previous, current - from_current
    else
      state.current = state.current - from_previous
    end
    previous, current = previous - from_previous, current - from_current
    return used_before - (usage_of(limit, now_us, start_us, previous, current, overlap_us))
  end,

  charged_by_us = function(state) return state.start_us + state.window_us - 1 end,
}
