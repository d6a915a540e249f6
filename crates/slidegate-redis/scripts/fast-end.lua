-- The end of the fast path: see fast-begin.lua. A binary reply is one string instead of a list of five, which saves a
-- tenth of the time of the whole call: used, retry_after_us, reset_after_us in 7 bytes each, big endian, and the place.
    if used then
      if not place_s then
        if binary_reply then return pack('>I7I7I7', used, retry_after_us, reset_after_us) end
        return { retry_after_us == 0 and 1 or 0, used, retry_after_us, reset_after_us, '' }
      end
      local life_us = reset_after_us + window_us
      if window_us < MARGIN_MIN_US then life_us = reset_after_us + MARGIN_MIN_US end
      if injected then life_us = LIFE_INJECTED_US elseif life_us > LIFE_MAX_US then life_us = LIFE_MAX_US end
      local ttl = string.format('%d', -floor(-life_us / 1000))
      if text then call('SET', value_key, text, 'PX', ttl) end
      if not text or value_key ~= key then call('PEXPIRE', key, ttl) end
      if binary_reply then
        local reply = pack('>I7I7I7I6I5I3', used, retry_after_us, reset_after_us, generation, place_s, place_us)
        if place_rest ~= '' then reply = reply .. place_rest end
        return reply
      end
      return {
        1, used, retry_after_us, reset_after_us, pack('>I6I5I3', generation, place_s, place_us) .. place_rest,
      }
    end
  end
end
