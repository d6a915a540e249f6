-- sliding-log/sorted-set, the fast path: see fast-begin.lua. The algorithm is also written in sorted-set.lua,
-- sliding-log.lua, fast-sliding-log.lua, crates/slidegate/src/algorithm/sliding_log.rs and
-- testing/model/sliding_log.rs; change all six.
-- It handles charges of 1 to 1,000 units. Sets that still hold scores of another unit have a longer body, and are left
-- to the general part.
-- Commands: GET, ZCOUNT; for a wait ZRANGE; to charge ZADD, ZREMRANGEBYSCORE, SET, PEXPIRE. ZADD comes first: a full
-- Redis refuses a script whose first write is ZADD or SET, but not one that first removes something.
local SIGNATURE = 0x5347010107 -- "SG", version 1, one limit, algorithm 7
local BODY_BYTES = 8
local MEMBERS_MAX = 1000 -- per ZADD: Lua passes no more than some thousand arguments
local newest, used_before = 0, nil
if cost == 0 or cost > MEMBERS_MAX then
  -- Left to the general part.
elseif size == 0 then
  -- No state. Any value KEY is another limiter's set, a packed state, or another program's.
  used_before = redis.pcall('ZCARD', key)
  if used_before == 0 then generation = ARGV[2] + 0 end
elseif size == BODY_START + BODY_BYTES then
  local signature, stored_window_us, stored_units, stored_generation, length, s, us = unpack('>I5xxI6I5I6I4I5I3', value)
  if signature == SIGNATURE and stored_window_us == window_us and length == BODY_BYTES then
    generation, newest = stored_generation, s * SECOND_US + us
    if stored_units == units then head = sub(value, 1, UNCHANGED_BYTES) end
  end
end
if generation then
  local stamp = newest
  if now_us > stamp then stamp = now_us end
  local cut = string.format('%d', stamp - window_us)
  if not used_before then used_before = redis.pcall('ZCOUNT', key, '(' .. cut, '+inf') end
  if type(used_before) == 'table' then
    -- Not a set: left to the general part.
  elseif used_before + cost > units then
    -- The cost passes when as many units are left as fit beside it. The oldest unit that must leave is counted from the
    -- newest.
    local rank = string.format('%d', cost - units - 1)
    retry_after_us = call('ZRANGE', key, rank, rank, 'WITHSCORES')[2] + window_us - now_us
    used, reset_after_us = used_before, newest + window_us - now_us
  elseif not charging then
    used = used_before
    if used > 0 then reset_after_us = newest + window_us - now_us end
  else
    local score = string.format('%d', stamp)
    if cost == 1 then
      call('ZADD', key, score, ARGV[2] .. ':1')
    else
      local members = {}
      for unit = 1, cost do
        members[2 * unit - 1], members[2 * unit] = score, string.format('%s:%d', ARGV[2], unit)
      end
      call('ZADD', key, _G.unpack(members))
    end
    if size > 0 then call('ZREMRANGEBYSCORE', key, '-inf', cut) end
    place_s = floor(stamp / SECOND_US)
    place_us = stamp - place_s * SECOND_US
    text = (head or pack(HEAD_FORMAT, SIGNATURE, 0, window_us, units, generation))
      .. pack('>I4I5I3', BODY_BYTES, place_s, place_us)
    used, reset_after_us = used_before + cost, stamp + window_us - now_us
  end
end
