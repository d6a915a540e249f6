-- sliding-buckets, the fast path, without the interpolated edge: see fast-begin.lua. Also written in
-- sliding-buckets.lua, crates/slidegate/src/algorithm/sliding_buckets.rs and testing/model/sliding_buckets.rs; change
-- all four.
local SIGNATURE = 0x5347010103 -- "SG", version 1, one limit, algorithm 3
local BODY_BYTES = 18
local expected, sum, bytes, ring_len, newest_us, counters = SIGNATURE, nil, nil, nil, nil, nil
parameter = parameter + 0
local bucket_us = -floor(-window_us / parameter)
-- general only
local SIGNATURE_DROPPED = 0x5347010123 -- with the edge dropped: algorithm 3 + 16 x 2
local dropped = edge_name == 'dropped'
if dropped then expected = SIGNATURE_DROPPED end
if edge_name == 'interpolated' then size = -1 end -- left to the general part
-- general only ends
if size == 0 then
  if charging then
    generation, sum, newest_us, counters = ARGV[2] + 0, 0, now_us - now_us % bucket_us, 1
    ring_len = floor((window_us - 2) / bucket_us) + 2
    bytes = units < RANGE_1 and 1 or units < RANGE_2 and 2 or units < RANGE_4 and 4 or 7
    value = string.rep('\0', ring_len * bytes)
  else
    used = 0
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
  local find, format = string.find, bytes == 1 and '>I1' or bytes == 2 and '>I2' or bytes == 4 and '>I4' or '>I7'
  -- A charge now would move `gone` buckets out of the ring.
  local start_us, effective_us, gone = now_us - now_us % bucket_us, newest_us, 0
  if now_us > newest_us then effective_us, gone = now_us, (start_us - newest_us) / bucket_us end
  local edge_us = effective_us + 1 - window_us
  edge_us = edge_us - edge_us % bucket_us
  -- The edge bucket as an index of the ring. No bucket before it counts, so those that are gone do not.
  local first_counted = ring_len - 1 + (edge_us - newest_us) / bucket_us
  -- general only
  -- A dropped edge counts as little as the buckets before it.
  if dropped and effective_us >= edge_us + window_us then first_counted = first_counted + 1 end
  -- general only ends
  local used_before, sum_after = sum, sum
  if gone >= ring_len then
    used_before, sum_after, gone = 0, 0, ring_len
  elseif first_counted > 0 then
    local offset = find(value, '[^%z]', counters)
    while offset do
      local bucket = floor((offset - counters) / bytes)
      if bucket >= first_counted then break end
      local bucket_units = unpack(format, value, counters + bucket * bytes)
      used_before = used_before - bucket_units
      if bucket < gone then sum_after = sum_after - bucket_units end
      offset = find(value, '[^%z]', counters + (bucket + 1) * bytes)
    end
  end
  local leaves_after_us = window_us + bucket_us - 1
  -- general only
  if dropped then leaves_after_us = window_us end
  -- general only ends
  local missing = used_before + cost - units
  if missing > 0 then
    local from = first_counted > 0 and first_counted or 0
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
    local bucket_units, kept = cost, nil
    if gone == 0 then
      bucket_units = bucket_units + unpack(format, value, counters + (ring_len - 1) * bytes)
      kept = sub(value, counters, counters + (ring_len - 1) * bytes - 1)
    else
      newest_us = start_us
      kept = sub(value, counters + gone * bytes) .. string.rep('\0', (gone - 1) * bytes)
    end
    if bucket_units < (bytes == 7 and RANGE_7 or RANGE_1 ^ bytes) then
      place_s = floor(newest_us / SECOND_US)
      place_us = newest_us - place_s * SECOND_US
      head = head or pack(HEAD_FORMAT, expected, parameter, window_us, units, generation)
      text = head .. pack('>I4I5I3I7BI2', BODY_BYTES + ring_len * bytes, place_s, place_us, sum_after + cost, bytes,
        ring_len) .. kept .. pack(format, bucket_units)
      used, reset_after_us = used_before + cost, newest_us + leaves_after_us - now_us
    end
  end
end
