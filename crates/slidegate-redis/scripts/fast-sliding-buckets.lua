-- sliding-buckets, the common case: see fast.lua and sliding-buckets.lua. The interpolated edge is not common.
local sum, bytes, cells, newest, counters
parameter = parameter + 0
local dropped = edge_name == 'dropped'
local width = -floor(-window / parameter)
if edge_name == 'interpolated' then
  -- Not common.
elseif size == 0 then
  if charges then
    generation, sum, newest, counters = ARGV[2] + 0, 0, now - now % width, 1
    cells = floor((window - 2) / width) + 2
    if units < 256 then bytes = 1 elseif units < 65536 then bytes = 2 elseif units < 4294967296 then bytes = 4 else bytes = 7 end
    value = string.rep('\0', cells * bytes)
  end
elseif size >= 46 then
  local signature, kept_parameter, kept, kept_units, drawn, length, s, us
  signature, kept_parameter, kept, kept_units, drawn, length, s, us, sum, bytes, cells, counters =
    unpack('>I5I2I6I5I6I4I5I3I7BI2', value)
  newest = s * 1e6 + us
  local wanted = 357673533699
  if dropped then wanted = 357673533731 end
  if signature == wanted and kept == window and kept_parameter == parameter and cells > 0
    and length == 18 + cells * bytes and size == 28 + length then
    generation = drawn
    if kept_units == units then head = sub(value, 1, 24) end
  end
end
if generation then
  local format, most = '>I7', 4503599627370496
  if bytes == 1 then format, most = '>I1', 256
  elseif bytes == 2 then format, most = '>I2', 65536
  elseif bytes == 4 then format, most = '>I4', 4294967296
  end
  local find = string.find
  local effective = newest
  if now > newest then effective = now end
  local edge = effective + 1 - window
  edge = edge - edge % width
  -- The edge bucket as an index of the ring; what is dropped goes with those before it.
  local index = cells - 1 + (edge - newest) / width
  local first_counted = index
  if dropped and effective >= edge + window then first_counted = index + 1 end
  local held = sum
  if first_counted >= cells then
    held = 0
  elseif first_counted > 0 then
    local at = find(value, '[^%z]', counters)
    while at do
      local cell = floor((at - counters) / bytes)
      if cell >= first_counted then break end
      held = held - unpack(format, value, counters + cell * bytes)
      at = find(value, '[^%z]', counters + (cell + 1) * bytes)
    end
  end
  local leaves = window + width - 1
  if dropped then leaves = window end
  local missing = held + cost - units
  if missing > 0 then
    local from = first_counted
    if from < 0 then from = 0 end
    repeat
      local at = find(value, '[^%z]', counters + from * bytes)
      from = floor((at - counters) / bytes)
      missing = missing - unpack(format, value, counters + from * bytes)
      from = from + 1
    until missing <= 0
    retry = newest - (cells - from) * width + leaves - now
  end
  if missing > 0 or retry > 0 or not charges then
    if held > 0 then
      local newest_used = cells - 1
      while unpack(format, value, counters + newest_used * bytes) == 0 do newest_used = newest_used - 1 end
      reset = newest - (cells - 1 - newest_used) * width + leaves - now
    end
    used = held
  else
    local start, from, total = now - now % width, 0, sum
    if start > newest then
      from = (start - newest) / width
      if from >= cells then
        from, total = cells, 0
      else
        local at = find(value, '[^%z]', counters)
        while at do
          local cell = floor((at - counters) / bytes)
          if cell >= from then break end
          total = total - unpack(format, value, counters + cell * bytes)
          at = find(value, '[^%z]', counters + (cell + 1) * bytes)
        end
      end
      newest = start
    end
    local own = cost
    if from == 0 then own = own + unpack(format, value, counters + (cells - 1) * bytes) end
    if own < most then
      place_s = floor(newest / 1e6)
      place_us = newest - place_s * 1e6
      local signature, kept = 357673533699, nil
      if dropped then signature = 357673533731 end
      head = head or pack('>I5I2I6I5I6', signature, parameter, window, units, generation)
      local body = pack('>I4I5I3I7BI2', 18 + cells * bytes, place_s, place_us, total + cost, bytes, cells)
      if from == 0 then
        kept = sub(value, counters, counters + (cells - 1) * bytes - 1)
      elseif from < cells then
        kept = sub(value, counters + from * bytes, counters + cells * bytes - 1) .. string.rep('\0', (from - 1) * bytes)
      else
        kept = string.rep('\0', (cells - 1) * bytes)
      end
      text = head .. body .. kept .. pack(format, own)
      used, reset = held + cost, newest + leaves - now
    end
  end
end
