-- sliding-counter: two adjacent fixed windows, the older weighted by its overlap.
--
-- Body, 22 bytes: 5 + 3 the start of the newest window that was charged, 7 units of the window before it, 7 units of
-- it.
-- Place, 8 bytes: 5 + 3 the start of the window.

-- Start, previous and current count as of `at`, and how much of its previous window the trailing window overlaps.
local function rolled(state, limit, at)
  local window, start, previous, current = limit.window, state.start, state.previous, state.current
  if not at then return start, previous, current, window end
  local begins = aligned(at, window)
  if begins > start then
    if begins - start == window then previous = current else previous = 0 end
    start, current = begins, 0
  end
  if at > start then return start, previous, current, window - (at - start) end
  return start, previous, current, window
end

local function usage_of(limit, at, start, previous, current, overlap)
  local window, used = limit.window, current
  if previous > 0 then used = used + ceil_share(previous, overlap, window) end
  if current > 0 then return used, start + 2 * window - at end
  if previous > 0 then return used, start + window - at end
  return 0, 0
end

return {
  new = function() return { start = -origin * 1e6, previous = 0, current = 0 } end,

  read = function(value, body, length)
    if length ~= 22 then return nil end
    local s, us, previous, current = unpack('>I5I3I7I7', value, body)
    return { start = (s - origin) * 1e6 + us, previous = previous, current = current }
  end,

  write = function(state)
    local s, us = instant(state.start)
    return pack('>I5I3I7I7', s, us, state.previous, state.current)
  end,

  usage = function(state, limit, at)
    return usage_of(limit, at or 0, rolled(state, limit, at))
  end,

  decide = function(state, limit, at, cost)
    local start, previous, current, overlap = rolled(state, limit, at)
    local window, units, retry = limit.window, limit.units, 0
    local room = units - current - cost
    if room < 0 then
      -- This window alone is too full: it has to become the previous one and fade.
      retry = start + 2 * window - floor_share(units - cost, window, current) - at
    elseif previous > 0 and not product_at_most(previous, overlap, room, window) then
      -- The largest overlap at which the previous window leaves enough room.
      retry = start + window - floor_share(room, window, previous) - at
    end
    local used, reset = usage_of(limit, at, start, previous, current, overlap)
    return used, reset, retry
  end,

  charge = function(state, limit, at, cost)
    local start, previous, current, overlap = rolled(state, limit, at)
    current = current + cost
    state.start, state.previous, state.current = start, previous, current
    local used, reset = usage_of(limit, at, start, previous, current, overlap)
    return pack('>I5I3', instant(start)), used, reset
  end,

  -- What was charged in a window stays there: only a charge moves the state on.
  refund = function(state, at, charged, units)
    local stamp, window, count = charged.stamp, state.window, nil
    local start = rolled(state, state, at)
    if start ~= stamp and start ~= stamp + window then return 0 end
    if state.start == stamp then count = 'current' elseif state.start == stamp + window then count = 'previous' end
    if not count then return 0 end
    if units > state[count] then units = state[count] end
    state[count] = state[count] - units
    return units
  end,

  credit = function(state, limit, at, units)
    local start, previous, current, overlap = rolled(state, limit, at)
    local window = limit.window
    local before = usage_of(limit, at, start, previous, current, overlap)
    if before == 0 then return 0 end
    if units > before then units = before end
    -- The previous window counts by its overlap only, so one unit of use is more than one of its units.
    local from_previous = previous
    if not product_at_most(previous, overlap, units, window) then
      from_previous = floor_share(units, window, overlap)
    end
    local from_current = units - ceil_share(from_previous, overlap, window)
    if from_current > current then from_current = current end
    if state.start == start then
      state.previous, state.current = previous - from_previous, current - from_current
    else
      state.current = state.current - from_previous
    end
    return before - (usage_of(limit, at, start, previous - from_previous, current - from_current, overlap))
  end,

  charged_by = function(state) return state.start + state.window - 1 end,
}
