-- What `refund` and `settle` share: a receipt works once, and not after the last of its charges has expired.
--
-- `accepted` says whether it does, `spend()` records it, `lowered()` takes back what one of its charges left behind.
local nonce = tonumber(ARGV[2])
local record = KEYS[#KEYS]
local expires_s, expires_us = tonumber(ARGV[3]), tonumber(ARGV[4])

local function expired(s, us)
  return s > expires_s or (s == expires_s and us >= expires_us)
end

-- What had expired when any receipt was presented to this caller stays expired, even if the clock was set back.
local accepted = not (expired(seconds, micros) or expired(tonumber(ARGV[5]), tonumber(ARGV[6])))
if accepted and call('EXISTS', record) == 1 then accepted = false end

-- The record is kept until its receipt has expired, and a while longer.
local function spend()
  local left = (expires_s - seconds) * 1e6 + expires_us - micros
  call('SET', record, 'SR', 'PX', ttl(left + 1e7))
end

-- Lowers every state at the place of its own geometry, unless it began anew since; the most that any limit gave back.
local function lowered(states, limits, units)
  local most = 0
  for index = 1, states.count do
    local state = states[index]
    for each = 1, limits.count do
      local limit = limits[each]
      if state.code == limit.code and state.window == limit.window and state.width == limit.width
        and state.generation == limit.generation then
        local given = module(state.code).refund(state, state, now, limit.place, units, limit.units)
        if given > most then most = given end
        break
      end
    end
  end
  return most
end
