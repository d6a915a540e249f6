-- What the fast path charged is stored: see fast-begin.lua. TTL rule: see codec.lua.
if used and place_s then
  local life_us = reset_after_us + window_us
  if window_us < MARGIN_MIN_US then life_us = reset_after_us + MARGIN_MIN_US end
  if injected then life_us = LIFE_INJECTED_US elseif life_us > LIFE_MAX_US then life_us = LIFE_MAX_US end
  local ttl = string.format('%d', -floor(-life_us / 1000))
  if text then call('SET', value_key, text, 'PX', ttl) end
  if not text or value_key ~= key then call('PEXPIRE', key, ttl) end
end
