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
