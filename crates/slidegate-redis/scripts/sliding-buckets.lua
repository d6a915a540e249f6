-- sliding-buckets: a ring of sub-buckets with a running sum. Also written in fast-sliding-buckets.lua,
-- crates/slidegate/src/algorithm/sliding_buckets.rs and testing/model/sliding_buckets.rs; change all four.
--
-- Body, 18 bytes and the counters: 5 + 3 the start of the newest bucket that was charged, 7 the sum of all counters,
-- 1 bytes of a counter (1, 2, 4 or 7: the narrowest that holds the limit), 2 how many counters, then the counters,
-- oldest bucket first, the last one that of the newest bucket. No counters before the first charge.
-- Place, 8 bytes: 5 + 3 the start of the bucket.
local BODY_BYTES, BODY_FORMAT = 18, '>I5I3I7BI2'
local find, rep = string.find, string.rep

local function format_of(bytes)
  if bytes == 1 then return '>I1' elseif bytes == 2 then return '>I2' elseif bytes == 4 then return '>I4' end
  return '>I7'
end

local function bytes_for(units)
  if units < RANGE_1 then return 1 elseif units < RANGE_2 then return 2 elseif units < RANGE_4 then return 4 end
  return 7
end

-- Units of the bucket at an index of the ring, 0 being the oldest.
local function units_of(state, index)
  return (unpack(state.format, state.text, state.offset + index * state.bytes))
end

-- The first index from `index` on, up to `last`, of a bucket that holds units; nil if there is none.
local function next_used(state, index, last)
  local bytes = state.bytes
  local offset = find(state.text, '[^%z]', state.offset + index * bytes)
  if not offset then return nil end
  index = floor((offset - state.offset) / bytes)
  if index <= last then return index end
end

local function sum_of(state, from, to)
  local sum, index = 0, next_used(state, from, to)
  while index do
    sum = sum + units_of(state, index)
    index = next_used(state, index + 1, to)
  end
  return sum
end

-- Sets the units of one bucket. Widens all counters if the units do not fit.
local function set_units(state, index, units)
  local bytes, ring_len = state.bytes, state.ring_len
  if bytes < 7 and units >= RANGE_1 ^ bytes then
    local wider, format, parts = bytes_for(units), nil, {}
    format = format_of(wider)
    for each = 0, ring_len - 1 do parts[each + 1] = pack(format, units_of(state, each)) end
    state.text, state.offset, state.bytes, state.format = table.concat(parts), 1, wider, format
    bytes = wider
  end
  state.sum = state.sum - units_of(state, index) + units
  local offset = state.offset + index * bytes
  state.text = sub(state.text, state.offset, offset - 1) .. pack(state.format, units)
    .. sub(state.text, offset + bytes, state.offset + ring_len * bytes - 1)
  state.offset = 1
end

-- The edge: the oldest bucket with a part in the window, as an index that may lie outside the ring. And its weight, in
-- microseconds of a bucket's width. `now_us` nil: at the last charge.
local function span(state, limit, now_us)
  local newest_us, window_us, bucket_us = state.newest_us, limit.window_us, limit.bucket_us
  local effective_us = newest_us
  if now_us and now_us > newest_us then effective_us = now_us end
  -- The oldest instant inside the window is now - W + 1.
  local edge_us = aligned(effective_us + 1 - window_us, bucket_us)
  local edge_weight_us = bucket_us
  if effective_us >= edge_us + window_us then
    if limit.edge == EDGE_DROPPED then
      edge_weight_us = 0
    elseif limit.edge == EDGE_INTERPOLATED then
      edge_weight_us = edge_us + bucket_us + window_us - effective_us
      if edge_weight_us > bucket_us then edge_weight_us = bucket_us end
    end
  end
  return (state.ring_len or 0) - 1 + (edge_us - newest_us) / bucket_us, edge_weight_us
end

-- The first instant at which the bucket at an index counts no more.
local function leaves_us(state, limit, index)
  local start_us = state.newest_us - (state.ring_len - 1 - index) * limit.bucket_us
  if limit.edge == EDGE_DROPPED then return start_us + limit.window_us end
  return start_us + limit.bucket_us - 1 + limit.window_us
end

-- used, reset_after_us, the units of the edge bucket and of all later ones.
local function usage_of(state, limit, now_us, edge, edge_weight_us)
  local edge_units, later = 0, state.sum
  if not state.ring_len or edge >= state.ring_len then
    later = 0
  elseif edge >= 0 then
    edge_units, later = units_of(state, edge), later - sum_of(state, 0, edge)
  end
  local used = later
  if edge_units > 0 and edge_weight_us > 0 then
    used = used + share_rounded_up(edge_units, edge_weight_us, limit.bucket_us)
  end
  if used == 0 then return 0, 0, edge_units, later end
  local last = state.ring_len - 1
  while units_of(state, last) == 0 do last = last - 1 end
  return used, leaves_us(state, limit, last) - now_us, edge_units, later
end

-- The instant at which `cost` passes, when it does not pass now.
local function passes_us(state, limit, edge, cost, edge_units, later)
  local room, last = limit.units - cost, state.ring_len - 1
  later = later + edge_units
  if edge < 0 then edge = 0 end
  local index = next_used(state, edge, last)
  while index do
    local units = units_of(state, index)
    later = later - units
    if later <= room then
      if limit.edge ~= EDGE_INTERPOLATED then return leaves_us(state, limit, index) end
      -- The largest weight at which the bucket leaves enough room; at weight 1 it is outside.
      local bucket_us = limit.bucket_us
      local edge_weight_us = bucket_us
      if room - later < units then edge_weight_us = quotient(room - later, bucket_us, units) end
      if edge_weight_us < 1 then edge_weight_us = 1 end
      return state.newest_us - (last - index) * bucket_us + bucket_us + limit.window_us - edge_weight_us
    end
    index = next_used(state, index + 1, last)
  end
end

local function usage(state, limit, now_us)
  local edge, edge_weight_us = span(state, limit, now_us)
  local used, reset_after_us = usage_of(state, limit, now_us or 0, edge, edge_weight_us)
  return used, reset_after_us
end

return {
  new = function() return { newest_us = -origin * SECOND_US, sum = 0 } end,

  read = function(value, body, length)
    if length < BODY_BYTES then return nil end
    local s, us, sum, bytes, ring_len, offset = unpack(BODY_FORMAT, value, body)
    if length ~= BODY_BYTES + ring_len * bytes then return nil end
    local state = { newest_us = (s - origin) * SECOND_US + us, sum = sum }
    if ring_len > 0 then
      state.ring_len, state.bytes, state.format = ring_len, bytes, format_of(bytes)
      state.text, state.offset = value, offset
    end
    return state
  end,

  write = function(state)
    local s, us = stored_instant(state.newest_us)
    if not state.ring_len then return pack(BODY_FORMAT, s, us, 0, 0, 0) end
    local offset = state.offset
    return pack(BODY_FORMAT, s, us, state.sum, state.bytes, state.ring_len)
      .. sub(state.text, offset, offset + state.ring_len * state.bytes - 1)
  end,

  usage = usage,

  decide = function(state, limit, now_us, cost)
    local edge, edge_weight_us = span(state, limit, now_us)
    local used, reset_after_us, edge_units, later = usage_of(state, limit, now_us, edge, edge_weight_us)
    if used + cost <= limit.units then return used, reset_after_us, 0 end
    return used, reset_after_us, passes_us(state, limit, edge, cost, edge_units, later) - now_us
  end,

  charge = function(state, limit, now_us, cost)
    local start_us, bucket_us = aligned(now_us, limit.bucket_us), limit.bucket_us
    if not state.ring_len then
      local value_max = limit.units
      if cost > value_max then value_max = cost end
      state.ring_len, state.bytes = floor((limit.window_us - 2) / bucket_us) + 2, bytes_for(value_max)
      state.format, state.offset, state.newest_us = format_of(state.bytes), 1, start_us
      state.text = rep('\0', state.ring_len * state.bytes)
    elseif start_us > state.newest_us then
      local steps, bytes, ring_len = (start_us - state.newest_us) / bucket_us, state.bytes, state.ring_len
      if steps >= ring_len then
        state.text, state.sum, state.offset = rep('\0', ring_len * bytes), 0, 1
      else
        state.sum = state.sum - sum_of(state, 0, steps - 1)
        state.text = sub(state.text, state.offset + steps * bytes, state.offset + ring_len * bytes - 1)
          .. rep('\0', steps * bytes)
        state.offset = 1
      end
      state.newest_us = start_us
    end
    local last = state.ring_len - 1
    set_units(state, last, units_of(state, last) + cost)
    return pack('>I5I3', stored_instant(state.newest_us)), usage(state, limit, now_us)
  end,

  refund = function(state, now_us, charged, units)
    if not state.ring_len then return 0 end
    local index = state.ring_len - 1 + (charged.stamp - state.newest_us) / state.bucket_us
    local edge, edge_weight_us = span(state, state, now_us)
    if index < edge or (index == edge and edge_weight_us == 0) or index < 0 or index >= state.ring_len then return 0 end
    local held = units_of(state, index)
    if units > held then units = held end
    if units > 0 then set_units(state, index, held - units) end
    return units
  end,

  credit = function(state, limit, now_us, units)
    local used_before = usage(state, limit, now_us)
    if used_before == 0 then return 0 end
    if units > used_before then units = used_before end
    local edge, edge_weight_us = span(state, limit, now_us)
    local bucket_us, last = limit.bucket_us, state.ring_len - 1
    local index = edge
    if index >= 0 then
      local held = units_of(state, index)
      if held > 0 and edge_weight_us > 0 then
        -- One unit of use is more than one of the edge bucket's units.
        local part = held
        if not product_at_most(held, edge_weight_us, units, bucket_us) then
          part = quotient(units, bucket_us, edge_weight_us)
        end
        set_units(state, index, held - part)
        units = units - share_rounded_up(part, edge_weight_us, bucket_us)
        if held > part then units = 0 end
      end
      index = index + 1
    else
      index = 0
    end
    index = next_used(state, index, last)
    while index and units > 0 do
      local held = units_of(state, index)
      local part = held
      if part > units then part = units end
      set_units(state, index, held - part)
      units = units - part
      index = next_used(state, index, last)
    end
    return used_before - (usage(state, limit, now_us))
  end,

  charged_by_us = function(state)
    if not state.ring_len then return -EXACT end
    return state.newest_us + state.bucket_us - 1
  end,
}
