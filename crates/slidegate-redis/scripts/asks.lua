-- What an admission asks, and what every limit says to it: the part that `check` and `peek` share.
--
-- Reads every state once and writes nothing. Each of `asks` holds, after its limit i: used, retry_after_us,
-- reset_after_us at 3i - 2, 3i - 1, 3i.
local nonce = tonumber(ARGV[2])
local asks, allowed, first = {}, 1, 3
for number = 1, #KEYS do
  local cost = tonumber(ARGV[first])
  local limits
  limits, first = limits_from(first + 1)
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  states = suited(KEYS[number], states, limits, nonce)
  local functions = module(limits[1].code)
  local ask = { cost = cost, limits = limits, states = states, passes = true }
  for index = 1, limits.count do
    local limit, state = limits[index], states[index]
    local used, reset, retry
    if cost > limit.units then
      used, reset = functions.usage(state, limit, now)
      retry = -1
    else
      used, reset, retry = functions.decide(state, limit, now, cost)
    end
    if retry ~= 0 then ask.passes = false end
    ask[3 * index - 2], ask[3 * index - 1], ask[3 * index] = used, retry, reset
  end
  if not ask.passes and not limits.shadow then allowed = 0 end
  asks[number] = ask
end
