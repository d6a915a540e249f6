-- refund: takes back a whole admission.
--
-- KEYS   the states of the receipt's charges, then the record of the spent receipt
-- ARGV   time in microseconds ("": the server's own), nonce, seconds and microseconds at which the last charge expires,
--        seconds and microseconds of the latest time at which this caller presented a receipt, then per charge: cost,
--        form as of `check`, and for every limit units, window in microseconds, place
-- Reply  1 if the receipt was spent by this call, else 0; seconds, microseconds, units given back
-- TTL    states: see codec.lua; the record: until the last charge expires, and 10 s
-- Commands per call: TIME unless the time is given, EXISTS, SET of the record; per charge GETRANGE, and SET if it gave
-- something back.
if not accepted then return { 0, seconds, micros, 0 } end
local first, units, found = 7, 0, {}
for number = 1, #KEYS - 1 do
  local cost = tonumber(ARGV[first])
  local limits
  limits, first = limits_from(first + 1, true)
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  found[number] = { cost = cost, limits = limits, states = states }
end
spend()
for number = 1, #KEYS - 1 do
  local charge = found[number]
  if charge.states then
    local given = lowered(charge.states, charge.limits, charge.cost)
    units = units + given
    if given > 0 then write_as_used(KEYS[number], charge.states) end
  end
end
return { 1, seconds, micros, units }
