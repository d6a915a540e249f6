-- fixed-window: one counter per clock-aligned window.
--
-- Body, 15 bytes: 5 + 3 the start of the newest window that was charged, 7 units charged in it.
-- Place, 8 bytes: 5 + 3 the start of the window.
local function rolled(state, limit, at)
  if at then
    local start = aligned(at, limit.window)
    if start > state.start then return start, 0 end
  end
  return state.start, state.count
end

local function credit(state, limit, at, units)
  local start, count = rolled(state, limit, at)
  if units > count then units = count end
  if units > 0 then state.start, state.count = start, count - units end
  return units
end

return {
  new = function() return { start = -origin * 1e6, count = 0 } end,

  read = function(value, body, length)
    if length ~= 15 then return nil end
    local s, us, count = unpack('>I5I3I7', value, body)
    return { start = (s - origin) * 1e6 + us, count = count }
  end,

  write = function(state)
    local s, us = instant(state.start)
    return pack('>I5I3I7', s, us, state.count)
  end,

  usage = function(state, limit, at)
    local start, count = rolled(state, limit, at)
    if count == 0 then return 0, 0 end
    return count, start + limit.window - (at or 0)
  end,

  decide = function(state, limit, at, cost)
    local start, count = rolled(state, limit, at)
    local left = start + limit.window - at
    local retry = 0
    if count + cost > limit.units then retry = left end
    if count == 0 then left = 0 end
    return count, left, retry
  end,

  charge = function(state, limit, at, cost)
    local start, count = rolled(state, limit, at)
    state.start, state.count = start, count + cost
    return pack('>I5I3', instant(start)), count + cost, start + limit.window - at
  end,

  refund = function(state, at, charged, units)
    if rolled(state, state, at) ~= charged.stamp then return 0 end
    return credit(state, state, at, units)
  end,

  credit = credit,

  charged_by = function(state) return state.start + state.window - 1 end,
}
