-- fixed-window: one counter per clock-aligned window. Also written in fast-fixed-window.lua,
-- crates/slidegate/src/algorithm/fixed_window.rs and testing/model/fixed_window.rs; change all four.
--
-- Body, 15 bytes: 5 + 3 the start of the newest window that was charged, 7 units charged in it.
-- Place, 8 bytes: 5 + 3 the start of the window.
local BODY_BYTES, BODY_FORMAT = 15, '>I5I3I7'

local function rolled(state, limit, now_us)
  if now_us then
    local start_us = aligned(now_us, limit.window_us)
    if start_us > state.start_us then return start_us, 0 end
  end
  return state.start_us, state.count
end

local function credit(state, limit, now_us, units)
  local start_us, count = rolled(state, limit, now_us)
  if units > count then units = count end
  if units > 0 then state.start_us, state.count = start_us, count - units end
  return units
end

return {
  new = function() return { start_us = -origin * SECOND_US, count = 0 } end,

  read = function(value, body, length)
    if length ~= BODY_BYTES then return nil end
    local s, us, count = unpack(BODY_FORMAT, value, body)
    return { start_us = (s - origin) * SECOND_US + us, count = count }
  end,

  write = function(state)
    local s, us = stored_instant(state.start_us)
    return pack(BODY_FORMAT, s, us, state.count)
  end,

  usage = function(state, limit, now_us)
    local start_us, count = rolled(state, limit, now_us)
    if count == 0 then return 0, 0 end
    return count, start_us + limit.window_us - (now_us or 0)
  end,

  decide = function(state, limit, now_us, cost)
    local start_us, count = rolled(state, limit, now_us)
    local ends_in_us = start_us + limit.window_us - now_us
    local retry_after_us, reset_after_us = 0, 0
    if count + cost > limit.units then retry_after_us = ends_in_us end
    if count > 0 then reset_after_us = ends_in_us end
    return count, reset_after_us, retry_after_us
  end,

  charge = function(state, limit, now_us, cost)
    local start_us, count = rolled(state, limit, now_us)
    state.start_us, state.count = start_us, count + cost
    return pack('>I5I3', stored_instant(start_us)), count + cost, start_us + limit.window_us - now_us
  end,

  refund = function(state, now_us, charged, units)
    if rolled(state, state, now_us) ~= charged.stamp then return 0 end
    return credit(state, state, now_us, units)
  end,

  credit = credit,

  charged_by_us = function(state) return state.start_us + state.window_us - 1 end,
}
