-- What `refund` and `settle` do: a receipt works once, and not after the last of its charges has expired. Its charges stand
-- from ARGV[first] on. They become `actual` units, nil only asks.
local nonce = tonumber(ARGV[2])
local record = KEYS[#KEYS]
local expires_s, expires_us = tonumber(ARGV[3]), tonumber(ARGV[4])

local function expired(s, us)
  return s > expires_s or (s == expires_s and us >= expires_us)
end

-- What had expired when any receipt was presented to this caller stays expired, even if the clock was set back.
if expired(seconds, micros) or expired(tonumber(ARGV[5]), tonumber(ARGV[6])) or call('EXISTS', record) == 1 then
  return { 0, seconds, micros, 0 }
end
if not actual then return { 1, seconds, micros, 0 } end

-- Lowers every state at the place of its own geometry, unless it began anew since; the most that any limit gave back.
local function lowered(states, limits, units)
  local most = 0
  for index = 1, states.count do
    local state = states[index]
    for each = 1, limits.count do
      local charged = limits[each]
      if state.code == charged.code and state.window == charged.window and state.width == charged.width
        and state.generation == charged.generation then
        local given = module(state.code).refund(state, now, charged, units)
        if given > most then most = given end
        break
      end
    end
  end
  return most
end

local units, found = 0, {}
for number = 1, #KEYS - 1 do
  local cost = tonumber(ARGV[first])
  local limits
  limits, first = limits_from(first + 1, true)
  local states, why = read(KEYS[number], limits)
  if why then return redis.error_reply(why) end
  if actual > cost then
    if (states or limits)[1].code == 7 then module(7).refuse_large(actual - cost) end
    -- If it was reset or forgotten since, it begins anew, as it was charged.
    states = states or suited(KEYS[number], nil, limits, nonce)
  end
  found[number] = { cost = cost, limits = limits, states = states }
end
-- The record is kept until its receipt has expired, and a while longer.
call('SET', record, 'SR', 'PX', ttl((expires_s - seconds) * 1e6 + expires_us - micros + 1e7))
for number = 1, #KEYS - 1 do
  local cost, states, moved = found[number].cost, found[number].states, 0
  if actual > cost then
    moved = actual - cost
    for index = 1, states.count do charge_excess(states[index], states[index], now, moved) end
  elseif actual < cost and states then
    moved = lowered(states, found[number].limits, cost - actual)
  end
  units = units + moved
  if moved > 0 then write_as_used(KEYS[number], states) end
end
return { 1, seconds, micros, units }
