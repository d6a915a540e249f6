-- peek: decides without charging.
--
-- KEYS, ARGV, Reply  as of `check`; every place is ""
-- TTL    nothing is written
-- Commands per call: TIME unless the time is given; per ask GETRANGE.
local reply, filled = { allowed }, 1
for number = 1, #asks do
  local ask = asks[number]
  for index = 1, ask.limits.count do
    reply[filled + 1], reply[filled + 2] = ask[3 * index - 2], ask[3 * index - 1]
    reply[filled + 3], reply[filled + 4] = ask[3 * index], ''
    filled = filled + 4
  end
end
return reply
