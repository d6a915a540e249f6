-- The common part of `refund` and `settle`: a receipt works once, and not after the last of its charges has expired.
-- Its charges begin at ARGV[first]. They become `actual` units; nil only asks whether the receipt could be used.
-- `give-back` has no receipt, and so no record.
local BACKLOG_START = 19 -- in a place of gcra
local nonce = tonumber(ARGV[2])
local record, states_count = KEYS[#KEYS], #KEYS - 1
if not recorded then record, states_count = nil, #KEYS end
local charges = {}
for number = 1, states_count do
  local charge = { cost = tonumber(ARGV[first]) }
  charge.limits, first = limits_from(first + 1, true)
  charges[number] = charge
end

-- When a charge at a place counts no more; at most LIFE_MAX_US from then.
local function place_expires_us(charged)
  local code, stamp, window_us = charged.code, charged.stamp, charged.window_us
  if code == SLIDING_COUNTER then return stamp + 2 * window_us end
  if code == SLIDING_BUCKETS and charged.edge ~= EDGE_DROPPED then return stamp + charged.bucket_us - 1 + window_us end
  if code ~= GCRA then return stamp + window_us end
  local high, low = unpack('>I6I6', charged.place, BACKLOG_START)
  local drained_us = -floor(-(high * WIDE_BASE + low) / charged.units)
  if drained_us > LIFE_MAX_US then drained_us = LIFE_MAX_US end
  return stamp + drained_us
end

local expires_s, expires_us = tonumber(ARGV[3]), tonumber(ARGV[4])
if not expires_s then
  local latest_us = -EXACT
  for number = 1, #charges do
    for _, charged in ipairs(charges[number].limits) do
      local place_us = place_expires_us(charged)
      if place_us > latest_us then latest_us = place_us end
    end
  end
  expires_s, expires_us = stored_instant(latest_us)
end

local function expired(s, us)
  return s > expires_s or (s == expires_s and us >= expires_us)
end

-- A receipt that had expired when this caller presented any receipt stays expired, even if the clock was set back.
local was_expired = ARGV[5] ~= '' and expired(tonumber(ARGV[5]), tonumber(ARGV[6]))
if expired(seconds, micros) or was_expired or record and call('EXISTS', record) == 1 then
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

for number = 1, #charges do
  local charge = charges[number]
  local states, why = read(KEYS[number], charge.limits)
  if why then return redis.error_reply(why) end
  if actual > charge.cost then
    if (states or charge.limits)[1].code == SORTED_SET then
      algorithm(SORTED_SET).refuse_large(actual - charge.cost)
    end
    -- A state that was reset or has expired since begins anew under the limits of the charge.
    states = states or states_of(KEYS[number], nil, charge.limits, nonce)
  end
  charge.states = states
end
-- The record outlives its receipt by a margin.
if record then
  call('SET', record, 'SR', 'PX', ttl((expires_s - seconds) * SECOND_US + expires_us - micros + MARGIN_MIN_US))
end
local units_total = 0
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
