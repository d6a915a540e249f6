-- check: decides and, if everything passes, charges everything. A denial writes nothing.
--
-- KEYS   the state of every ask
-- ARGV   time in microseconds ("": the server's own), nonce (below 2^48, drawn for this call), then per ask: cost,
--        form, and for every limit units and window in microseconds. The form is the algorithm's name, which is all
--        of it for one limit without parameters; else more, after commas: buckets or entries or 0, edge or nothing,
--        number of limits, `shadow` or nothing: `sliding-log`, `sliding-buckets,60,full`, `sliding-log,0,,2,shadow`
-- Reply  allowed (1|0), then per ask and limit: used, retry_after_us, reset_after_us, place.
--        retry_after_us is -1 where the cost is above the limit. A time above 2^53 is 12 bytes, big endian. place is ""
--        if nothing was charged, else 6 bytes generation and the algorithm's own bytes.
-- TTL    see codec.lua
-- Commands per call: TIME unless the time is given; per ask GETRANGE, and SET if it is charged. Long logs: see
-- sliding-log.lua. Values above 512 bytes of other algorithms: GET in its place or too.
local reply, filled = { allowed }, 1
for number = 1, #asks do
  local ask = asks[number]
  local limits, states, charged = ask.limits, ask.states, allowed == 1 and ask.passes
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
