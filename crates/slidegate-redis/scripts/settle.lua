-- settle: replaces the cost of an admission by what was really spent. Less is given back, more is charged now,
-- unconditionally.
--
-- KEYS   as of `refund`
-- ARGV   as of `refund`, with the units really spent after the latest time; "" only asks whether the receipt could
--        still be used
-- Reply  1 if the receipt was spent by this call (could be, if asked), else 0; seconds, microseconds, units given
--        back or charged
-- TTL    as of `refund`
-- Commands per call: as of `refund`.
if not accepted then return { 0, seconds, micros, 0 } end
if ARGV[7] == '' then return { 1, seconds, micros, 0 } end
local actual, first, units, found = tonumber(ARGV[7]), 8, 0, {}
for number = 1, #KEYS - 1 do
  local cost = tonumber(ARGV[first])
  local limits
  limits, first = limits_from(first + 1, true)
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  if (states or limits)[1].code == 7 then module(7).refuse_large(actual - cost) end
  if not states and actual > cost then
    -- It was reset or forgotten since: it begins anew, as it was charged.
    states = { count = limits.count }
    for index = 1, limits.count do states[index] = fresh(KEYS[number], limits[index], nonce) end
  end
  found[number] = { cost = cost, limits = limits, states = states }
end
spend()
for number = 1, #KEYS - 1 do
  local cost, limits, states = found[number].cost, found[number].limits, found[number].states
  if actual > cost then
    for index = 1, states.count do charge_excess(states[index], states[index], now, actual - cost) end
    units = units + actual - cost
    write_as_used(KEYS[number], states)
  elseif actual < cost and states then
    local given = lowered(states, limits, cost - actual)
    units = units + given
    if given > 0 then write_as_used(KEYS[number], states) end
  end
end
return { 1, seconds, micros, units }
