-- sliding-buckets: a ring of sub-buckets with a running sum.
--
-- Body, 18 bytes and the counters: 5 + 3 the start of the newest bucket that was charged, 7 the sum of all counters,
-- 1 bytes of a counter (1, 2, 4 or 7: the narrowest that holds the limit), 2 how many counters, then the counters,
-- oldest bucket first, the last one that of the newest bucket. No counters before the first charge.
-- Place, 8 bytes: 5 + 3 the start of the bucket.
local find, rep = string.find, string.rep

local function format_of(bytes)
  if bytes == 1 then return '>I1' elseif bytes == 2 then return '>I2' elseif bytes == 4 then return '>I4' end
  return '>I7'
end

local function bytes_for(units)
  if units < 256 then return 1 elseif units < 65536 then return 2 elseif units < 4294967296 then return 4 end
  return 7
end

-- Units of the bucket at an index of the ring, 0 being the oldest.
local function cell(state, index)
  return (unpack(state.format, state.text, state.offset + index * state.bytes))
end

-- The first index from `index` on, up to `last`, of a bucket that holds units; nil if there is none.
local function next_used(state, index, last)
  local bytes = state.bytes
  local at = find(state.text, '[^%z]', state.offset + index * bytes)
  if not at then return nil end
  index = floor((at - state.offset) / bytes)
  if index <= last then return index end
end

local function sum_cells(state, from, to)
  local sum, index = 0, next_used(state, from, to)
  while index do
    sum = sum + cell(state, index)
    index = next_used(state, index + 1, to)
  end
  return sum
end

-- Sets the units of one bucket; counters become wider where they must.
local function set_cell(state, index, units)
  local bytes, ring = state.bytes, state.cells
  if bytes < 7 and units >= 256 ^ bytes then
    local wider, format, parts = bytes_for(units), nil, {}
    format = format_of(wider)
    for each = 0, ring - 1 do parts[each + 1] = pack(format, cell(state, each)) end
    state.text, state.offset, state.bytes, state.format = table.concat(parts), 1, wider, format
    bytes = wider
  end
  state.sum = state.sum - cell(state, index) + units
  local at = state.offset + index * bytes
  state.text = sub(state.text, state.offset, at - 1) .. pack(state.format, units)
    .. sub(state.text, at + bytes, state.offset + ring * bytes - 1)
  state.offset = 1
end

-- The oldest bucket with a part in the window, as an index that may lie outside the ring, and its weight: so many
-- microseconds of a bucket's width.
local function span(state, limit, at)
  local newest, window, width = state.newest, limit.window, limit.width
  local effective = newest
  if at and at > newest then effective = at end
  -- The oldest instant inside the window is now - W + 1.
  local edge = aligned(effective + 1 - window, width)
  local weight = width
  if effective >= edge + window then
    if limit.edge == 2 then
      weight = 0
    elseif limit.edge == 1 then
      weight = edge + width + window - effective
      if weight > width then weight = width end
    end
  end
  return (state.cells or 0) - 1 + (edge - newest) / width, weight
end

-- When the bucket at an index counts no more.
local function leaves(state, limit, index)
  local start = state.newest - (state.cells - 1 - index) * limit.width
  if limit.edge == 2 then return start + limit.window end
  return start + limit.width - 1 + limit.window
end

-- What is used and for how long, then the units of the edge bucket and of all that are later.
local function usage_of(state, limit, at, edge, weight)
  local edge_units, later = 0, state.sum
  if not state.cells or edge >= state.cells then
    later = 0
  elseif edge >= 0 then
    edge_units, later = cell(state, edge), later - sum_cells(state, 0, edge)
  end
  local used = later
  if edge_units > 0 and weight > 0 then used = used + ceil_share(edge_units, weight, limit.width) end
  if used == 0 then return 0, 0, edge_units, later end
  local last = state.cells - 1
  while cell(state, last) == 0 do last = last - 1 end
  return used, leaves(state, limit, last) - at, edge_units, later
end

-- The instant at which `cost` passes; it does not yet.
local function passes(state, limit, edge, cost, edge_units, later)
  local room, last = limit.units - cost, state.cells - 1
  later = later + edge_units
  if edge < 0 then edge = 0 end
  local index = next_used(state, edge, last)
  while index do
    local units = cell(state, index)
    later = later - units
    if later <= room then
      if limit.edge ~= 1 then return leaves(state, limit, index) end
      -- The largest weight at which the bucket leaves enough room; at weight 1 it is outside.
      local width = limit.width
      local weight = width
      if room - later < units then weight = floor_share(room - later, width, units) end
      if weight < 1 then weight = 1 end
      return state.newest - (last - index) * width + width + limit.window - weight
    end
    index = next_used(state, index + 1, last)
  end
end

local function usage(state, limit, at)
  local edge, weight = span(state, limit, at)
  local used, reset = usage_of(state, limit, at or 0, edge, weight)
  return used, reset
end

return {
  new = function() return { newest = -origin * 1e6, sum = 0 } end,

  read = function(value, body, length)
    if length < 18 then return nil end
    local s, us, sum, bytes, ring, offset = unpack('>I5I3I7BI2', value, body)
    if length ~= 18 + ring * bytes then return nil end
    local state = { newest = (s - origin) * 1e6 + us, sum = sum }
    if ring > 0 then
      state.cells, state.bytes, state.format, state.text, state.offset = ring, bytes, format_of(bytes), value, offset
    end
    return state
  end,

  write = function(state)
    local s, us = instant(state.newest)
    if not state.cells then return pack('>I5I3I7BI2', s, us, 0, 0, 0) end
    local offset = state.offset
    return pack('>I5I3I7BI2', s, us, state.sum, state.bytes, state.cells)
      .. sub(state.text, offset, offset + state.cells * state.bytes - 1)
  end,

  usage = usage,

  decide = function(state, limit, at, cost)
    local edge, weight = span(state, limit, at)
    local used, reset, edge_units, later = usage_of(state, limit, at, edge, weight)
    if used + cost <= limit.units then return used, reset, 0 end
    return used, reset, passes(state, limit, edge, cost, edge_units, later) - at
  end,

  charge = function(state, limit, at, cost)
    local start, width = aligned(at, limit.width), limit.width
    if not state.cells then
      local most = limit.units
      if cost > most then most = cost end
      state.cells, state.bytes = floor((limit.window - 2) / width) + 2, bytes_for(most)
      state.format, state.offset, state.newest = format_of(state.bytes), 1, start
      state.text = rep('\0', state.cells * state.bytes)
    elseif start > state.newest then
      local steps, bytes, ring = (start - state.newest) / width, state.bytes, state.cells
      if steps >= ring then
        state.text, state.sum, state.offset = rep('\0', ring * bytes), 0, 1
      else
        state.sum = state.sum - sum_cells(state, 0, steps - 1)
        state.text = sub(state.text, state.offset + steps * bytes, state.offset + ring * bytes - 1)
          .. rep('\0', steps * bytes)
        state.offset = 1
      end
      state.newest = start
    end
    local last = state.cells - 1
    set_cell(state, last, cell(state, last) + cost)
    return pack('>I5I3', instant(state.newest)), usage(state, limit, at)
  end,

  refund = function(state, at, charged, units)
    if not state.cells then return 0 end
    local index = state.cells - 1 + (charged.stamp - state.newest) / state.width
    local edge, weight = span(state, state, at)
    if index < edge or (index == edge and weight == 0) or index < 0 or index >= state.cells then return 0 end
    local held = cell(state, index)
    if units > held then units = held end
    if units > 0 then set_cell(state, index, held - units) end
    return units
  end,

  credit = function(state, limit, at, units)
    local before = usage(state, limit, at)
    if before == 0 then return 0 end
    if units > before then units = before end
    local edge, weight = span(state, limit, at)
    local width, last = limit.width, state.cells - 1
    local index = edge
    if index >= 0 then
      local held = cell(state, index)
      if held > 0 and weight > 0 then
        -- One unit of use is more than one of the edge bucket's units.
        local part = held
        if not product_at_most(held, weight, units, width) then part = floor_share(units, width, weight) end
        set_cell(state, index, held - part)
        units = units - ceil_share(part, weight, width)
        if held > part then units = 0 end
      end
      index = index + 1
    else
      index = 0
    end
    index = next_used(state, index, last)
    while index and units > 0 do
      local held = cell(state, index)
      local part = held
      if part > units then part = units end
      set_cell(state, index, held - part)
      units = units - part
      index = next_used(state, index, last)
    end
    return before - (usage(state, limit, at))
  end,

  charged_by = function(state)
    if not state.cells then return -EXACT end
    return state.newest + state.width - 1
  end,
}
