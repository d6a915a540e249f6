-- The common part of `refund` and `settle`: a receipt works once, and not after the last of its charges has expired.
-- Its charges begin at ARGV[first]. They become `actual` units; nil only asks whether the receipt could be used.
-- `give-back` has no receipt, and so no record.
local nonce = tonumber(ARGV[2])
local record, states_count = KEYS[#KEYS], #KEYS - 1
if not recorded then record, states_count = nil, #KEYS end
local expires_s, expires_us = tonumber(ARGV[3]), tonumber(ARGV[4])

local function expired(s, us)
  return s > expires_s or (s == expires_s and us >= expires_us)
end

-- A receipt that had expired when this caller presented any receipt stays expired, even if the clock was set back.
if expired(seconds, micros) or expired(tonumber(ARGV[5]), tonumber(ARGV[6]))
  or record and call('EXISTS', record) == 1 then
  return { 0, seconds, micros, 0 }
end
if not actual then return { 1, seconds, micros, 0 } end

-- Refunds units of every state at the place of its own geometry, unless the state began anew since. Returns the most
-- that any limit gave back.
local function refund(states, limits, units)
  local most = 0
  for index = 1, states.count do
    local state = states[index]
    for each = 1, limits.count do
      local charged = limits[each]
      if same_geometry(state, charged) and state.generation == charged.generation then
        local given = algorithm(state.code).refund(state, now_us, charged, units)
        if given > most then most = given end
        break
      end
    end
  end
  return most
end

local units_total, charges = 0, {}
for number = 1, states_count do
  local cost = tonumber(ARGV[first])
  local limits
  limits, first = limits_from(first + 1, true)
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  if actual > cost then
    if (states or limits)[1].code == SORTED_SET then algorithm(SORTED_SET).refuse_large(actual - cost) end
    -- A state that was reset or has expired since begins anew under the limits of the charge.
    states = states or states_of(KEYS[number], nil, limits, nonce)
  end
  charges[number] = { cost = cost, limits = limits, states = states }
end
-- The record outlives its receipt by a margin.
if record then
  call('SET', record, 'SR', 'PX', ttl((expires_s - seconds) * SECOND_US + expires_us - micros + MARGIN_MIN_US))
end
for number = 1, states_count do
  local cost, states, units = charges[number].cost, charges[number].states, 0
  if actual > cost then
    units = actual - cost
    for index = 1, states.count do charge_excess(states[index], states[index], now_us, units) end
  elseif actual < cost and states then
    units = refund(states, charges[number].limits, cost - actual)
  end
  units_total = units_total + units
  if units > 0 then write_as_used(KEYS[number], states) end
end
return { 1, seconds, micros, units_total }
