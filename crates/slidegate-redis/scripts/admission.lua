-- The general part of `check` and `peek`: decides every charge of an admission, and charges if all pass.
--
-- Every state is read once, and all are read before any is written. A decided charge holds, after its limit i: used,
-- retry_after_us, reset_after_us at 3i - 2, 3i - 1, 3i.
local SHORT_PLACE_BYTES = 14 -- that of gcra is longer
local nonce = tonumber(ARGV[2])
local decided, allowed, first = {}, 1, 3
for number = 1, #KEYS do
  local cost = tonumber(ARGV[first])
  local limits
  limits, first = limits_from(first + 1)
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  states = states_of(KEYS[number], states, limits, nonce)
  local functions = algorithm(limits[1].code)
  local charge = { cost = cost, limits = limits, states = states, passes = true }
  for index = 1, limits.count do
    local limit, state = limits[index], states[index]
    local used, reset_after_us, retry_after_us
    if cost > limit.units then
      used, reset_after_us = functions.usage(state, limit, now_us)
      retry_after_us = -1
    else
      used, reset_after_us, retry_after_us = functions.decide(state, limit, now_us, cost)
    end
    if retry_after_us ~= 0 then charge.passes = false end
    charge[3 * index - 2], charge[3 * index - 1], charge[3 * index] = used, retry_after_us, reset_after_us
  end
  if not charge.passes and not limits.shadow then allowed = 0 end
  decided[number] = charge
end
local reply, filled = { allowed }, 1
for number = 1, #decided do
  local charge = decided[number]
  local limits, states, charged = charge.limits, charge.states, charging and allowed == 1 and charge.passes
  local functions, longest_us = algorithm(limits[1].code), 0
  for index = 1, limits.count do
    local used, retry_after_us, reset_after_us = charge[3 * index - 2], charge[3 * index - 1], charge[3 * index]
    local place = ''
    if charged then
      local limit, state = limits[index], states[index]
      place, used, reset_after_us = functions.charge(state, limit, now_us, charge.cost)
      set_limit(state, limit)
      place = pack('>I6', state.generation) .. place
      if not binary_reply then
        local rest = sub(place, SHORT_PLACE_BYTES + 1)
        place = string.format('%012x%010x%06x', unpack('>I6I5I3', place))
        if rest ~= '' then place = place .. string.format('%08x%012x%012x%016x', unpack('>I4I6I6I8', rest)) end
      end
      local life_us = life(reset_after_us, limit.window_us)
      if life_us > longest_us then longest_us = life_us end
    end
    reply[filled + 1], reply[filled + 2], reply[filled + 3], reply[filled + 4] =
      used, retry_after_us, reset_after_us, place
    filled = filled + 4
  end
  if charged then write(KEYS[number], states, longest_us) end
end
return reply
