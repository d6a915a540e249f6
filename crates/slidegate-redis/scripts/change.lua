local nonce = tonumber(ARGV[2])
local limits, changed, count = limits_from(4), {}, 0
for number = 1, #KEYS do
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  if states then
    states = carried_over(KEYS[number], states, limits, now_us, now_us, nonce)
    for index = 1, limits.count do
      local state, limit = states[index], limits[index]
      local functions = algorithm(state.code)
      if functions.change then functions.change(state, limit, now_us) end
      set_limit(state, limit)
    end
    count = count + 1
  end
  changed[number] = states or false
end
for number = 1, #KEYS do
  if changed[number] then write_as_used(KEYS[number], changed[number]) end
end
return count
