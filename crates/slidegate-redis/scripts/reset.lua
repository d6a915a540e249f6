local states, why = read(KEYS[1], limits_from(4))
if why then return redis.error_reply(why) end
if not states then return { 0, seconds, micros, 0 } end
local used = used_max(states, now_us)
call('DEL', KEYS[1])
if states[1].code == SORTED_SET then
  call('DEL', algorithm(SORTED_SET).value_name(KEYS[1]))
  for index = 1, states.count do
    if states[index].set then call('DEL', states[index].set) end
  end
end
return { used > 0 and 1 or 0, seconds, micros, used }
