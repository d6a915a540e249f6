-- The classical sliding log: a sorted set with one member per unit. Prune, count, add.
--
-- It is no part of the store. It is how everybody writes a sliding log in Redis first: short enough to be
-- believed by reading it, and so the judge of what the store admits and counts, and its rival in speed.
--
-- KEYS[1]  the sorted set: a member per unit, its score the microsecond at which it was admitted
-- ARGV     now in microseconds, or "" for the server's clock; window in microseconds; limit; cost; and a text
--          that no other call has, which makes the members unique
-- reply    {1 if admitted else 0, units in use afterwards}
-- TTL      the window, set by every admission; an hour at injected time
-- commands ZREMRANGEBYSCORE, ZCARD; if admitted, ZADD for every thousand units, and PEXPIRE; TIME first unless given
--
-- Every instant must be below 2^53 microseconds, as scores are doubles, and none earlier than the one before.

local window, limit, cost = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local injected = ARGV[1] ~= ''
local now
if injected then
  now = tonumber(ARGV[1])
else
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- What is exactly a window old counts no longer.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - window))
local used = redis.call('ZCARD', KEYS[1])
if used + cost > limit then
  return {0, used}
end

local score = string.format('%.0f', now)
local scored = {}
for unit = 1, cost do
  scored[#scored + 1] = score
  scored[#scored + 1] = ARGV[5] .. ':' .. unit
  -- Lua unpacks no more than some thousand values at once.
  if #scored == 2000 or unit == cost then
    redis.call('ZADD', KEYS[1], unpack(scored))
    scored = {}
  end
end
redis.call('PEXPIRE', KEYS[1], injected and 3600000 or math.ceil(window / 1000))
return {1, used + cost}
