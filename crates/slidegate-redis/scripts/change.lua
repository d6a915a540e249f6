-- change: takes over a live change of a rule for the states of some of its keys.
--
-- Each limit goes on with the state of its own geometry; one that has none begins with the largest use of all, stamped
-- now, and a new generation.
--
-- KEYS   the states
-- ARGV   time in microseconds ("": the server's own), nonce, then one ask as of `check`; its cost does not matter
-- Reply  how many states were changed
-- TTL    see codec.lua
-- Commands per call: TIME unless the time is given; per key GETRANGE and SET.
local nonce = tonumber(ARGV[2])
local limits, found, changed = limits_from(4), {}, 0
for number = 1, #KEYS do
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  if states then
    states = followed(KEYS[number], states, limits, now, now, nonce)
    for index = 1, limits.count do
      local state, limit = states[index], limits[index]
      local functions = module(state.code)
      if functions.change then functions.change(state, limit, now) end
      keep_under(state, limit)
    end
    changed = changed + 1
  end
  found[number] = states or false
end
for number = 1, #KEYS do
  if found[number] then write_as_used(KEYS[number], found[number]) end
end
return changed
