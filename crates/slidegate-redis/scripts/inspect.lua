-- inspect: reports the use of every limit of a rule, without changing anything.
--
-- KEYS   the state
-- ARGV   time in microseconds ("": the server's own), nonce, then one charge as of `check`; its cost does not matter
-- Reply  seconds, microseconds, then per limit: used, reset_after_us (12 bytes, big endian, above 2^53)
-- TTL    nothing is written
-- Commands per call: TIME unless the time is given, GETRANGE.
local limits = limits_from(4)
local states, why = read(KEYS[1], limits)
if why then return redis.error_reply(why) end
states = states_of(KEYS[1], states, limits, 0)
local reply = { seconds, micros }
for index = 1, limits.count do
  reply[2 * index + 1], reply[2 * index + 2] =
    algorithm(limits[index].code).usage(states[index], limits[index], now_us)
end
return reply
