-- sliding-buckets, the fast path, without the interpolated edge: see fast-begin.lua. Also written in
-- sliding-buckets.lua, crates/slidegate/src/algorithm/sliding_buckets.rs and testing/model/sliding_buckets.rs; change
-- all four.
-- "SG", version 1, one limit, algorithm 3; with the edge dropped + 16 x 2
local SIGNATURE, SIGNATURE_DROPPED = 0x5347010103, 0x5347010123
local BODY_BYTES = 18
local sum, bytes, ring_len, newest_us, counters
parameter = parameter + 0
local dropped = edge_name == 'dropped'
local expected = SIGNATURE
if dropped then expected = SIGNATURE_DROPPED end
local bucket_us = -floor(-window_us / parameter)
if edge_name == 'interpolated' then
  -- Left to the general part.
elseif size == 0 then
  if charging then
    generation, sum, newest_us, counters = ARGV[2] + 0, 0, now_us - now_us % bucket_us, 1
    ring_len = floor((window_us - 2) / bucket_us) + 2
    bytes = 7
    if units < RANGE_1 then bytes = 1 elseif units < RANGE_2 then bytes = 2 elseif units < RANGE_4 then bytes = 4 end
    value = string.rep('\0', ring_len * bytes)
  end
elseif size >= BODY_START + BODY_BYTES then
  local signature, stored_parameter, stored_window_us, stored_units, stored_generation, length, s, us
  signature, stored_parameter, stored_window_us, stored_units, stored_generation, length, s, us, sum, bytes, ring_len,
    counters = unpack('>I5I2I6I5I6I4I5I3I7BI2', value)
  newest_us = s * SECOND_US + us
  if signature == expected and stored_window_us == window_us and stored_parameter == parameter and ring_len > 0
    and length == BODY_BYTES + ring_len * bytes and size == BODY_START + length then
    generation = stored_generation
    if stored_units == units then head = sub(value, 1, UNCHANGED_BYTES) end
  end
end
if generation then
  local format, counter_range = '>I7', RANGE_7
  if bytes == 1 then format, counter_range = '>I1', RANGE_1
  elseif bytes == 2 then format, counter_range = '>I2', RANGE_2
  elseif bytes == 4 then format, counter_range = '>I4', RANGE_4
  end
  local find = string.find
  local effective_us = newest_us
  if now_us > newest_us then effective_us = now_us end
  local edge_us = effective_us + 1 - window_us
  edge_us = edge_us - edge_us % bucket_us
  -- The edge bucket as an index of the ring. A dropped edge counts as little as the buckets before it.
  local index = ring_len - 1 + (edge_us - newest_us) / bucket_us
  local first_counted = index
  if dropped and effective_us >= edge_us + window_us then first_counted = index + 1 end
  local used_before = sum
  if first_counted >= ring_len then
    used_before = 0
  elseif first_counted > 0 then
    local offset = find(value, '[^%z]', counters)
    while offset do
      local bucket = floor((offset - counters) / bytes)
      if bucket >= first_counted then break end
      used_before = used_before - unpack(format, value, counters + bucket * bytes)
      offset = find(value, '[^%z]', counters + (bucket + 1) * bytes)
    end
  end
  local leaves_after_us = window_us + bucket_us - 1
  if dropped then leaves_after_us = window_us end
  local missing = used_before + cost - units
  if missing > 0 then
    local from = first_counted
    if from < 0 then from = 0 end
    repeat
      local offset = find(value, '[^%z]', counters + from * bytes)
      from = floor((offset - counters) / bytes)
      missing = missing - unpack(format, value, counters + from * bytes)
      from = from + 1
    until missing <= 0
    retry_after_us = newest_us - (ring_len - from) * bucket_us + leaves_after_us - now_us
  end
  if missing > 0 or retry_after_us > 0 or not charging then
    if used_before > 0 then
      local newest_used = ring_len - 1
      while unpack(format, value, counters + newest_used * bytes) == 0 do newest_used = newest_used - 1 end
      reset_after_us = newest_us - (ring_len - 1 - newest_used) * bucket_us + leaves_after_us - now_us
    end
    used = used_before
  else
    local start_us, from, sum_after = now_us - now_us % bucket_us, 0, sum
    if start_us > newest_us then
      from = (start_us - newest_us) / bucket_us
      if from >= ring_len then
        from, sum_after = ring_len, 0
      else
        local offset = find(value, '[^%z]', counters)
        while offset do
          local bucket = floor((offset - counters) / bytes)
          if bucket >= from then break end
          sum_after = sum_after - unpack(format, value, counters + bucket * bytes)
          offset = find(value, '[^%z]', counters + (bucket + 1) * bytes)
        end
      end
      newest_us = start_us
    end
    local bucket_units = cost
    if from == 0 then bucket_units = bucket_units + unpack(format, value, counters + (ring_len - 1) * bytes) end
    if bucket_units < counter_range then
      place_s = floor(newest_us / SECOND_US)
      place_us = newest_us - place_s * SECOND_US
      local kept
      head = head or pack(HEAD_FORMAT, expected, parameter, window_us, units, generation)
      local body = pack('>I4I5I3I7BI2', BODY_BYTES + ring_len * bytes, place_s, place_us, sum_after + cost, bytes,
        ring_len)
      if from == 0 then
        kept = sub(value, counters, counters + (ring_len - 1) * bytes - 1)
      elseif from < ring_len then
        kept = sub(value, counters + from * bytes, counters + ring_len * bytes - 1)
          .. string.rep('\0', (from - 1) * bytes)
      else
        kept = string.rep('\0', (ring_len - 1) * bytes)
      end
      text = head .. body .. kept .. pack(format, bucket_units)
      used, reset_after_us = used_before + cost, newest_us + leaves_after_us - now_us
    end
  end
end
