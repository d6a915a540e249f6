local nonce = tonumber(ARGV[2])
local units, limits = tonumber(ARGV[3]), limits_from(4)
local states, why = read(KEYS[1], limits)
if why then return redis.error_reply(why) end
if not states then return { 0, seconds, micros, 0 } end
local changed = not match(states, limits)
states = states_of(KEYS[1], states, limits, nonce)
local most = 0
for index = 1, states.count do
  local state, limit = states[index], limits[index]
  local functions = algorithm(state.code)
  if units > 0 and functions.usage(state, limit, now_us) > 0 then
    local fell = functions.credit(state, limit, now_us, units)
    if fell > most then most = fell end
    set_limit(state, limit)
    changed = true
  end
end
if changed then write_as_used(KEYS[1], states) end
return { most > 0 and 1 or 0, seconds, micros, most }
