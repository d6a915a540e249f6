-- The general part of `check` and `peek`: what every limit says to an admission, and its charges.
--
-- Every state is read once, and all are read before any is written. Each of `asks` holds, after its limit i: used,
-- retry_after_us, reset_after_us at 3i - 2, 3i - 1, 3i.
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
local reply, filled = { allowed }, 1
for number = 1, #asks do
  local ask = asks[number]
  local limits, states, charged = ask.limits, ask.states, charges and allowed == 1 and ask.passes
  local functions, longest = module(limits[1].code), 0
  for index = 1, limits.count do
    local used, retry, reset, place = ask[3 * index - 2], ask[3 * index - 1], ask[3 * index], ''
    if charged then
      local limit, state = limits[index], states[index]
      place, used, reset = functions.charge(state, limit, now, ask.cost)
      keep_under(state, limit)
      place = pack('>I6', state.generation) .. place
      local each = lasts(reset, limit.window)
      if each > longest then longest = each end
    end
    reply[filled + 1], reply[filled + 2], reply[filled + 3], reply[filled + 4] = used, retry, reset, place
    filled = filled + 4
  end
  if charged then write(KEYS[number], states, longest) end
end
return reply
