-- The end of the common case: see fast.lua. In short, it is one text instead of a list of five, which takes Redis a tenth of
-- the time of the whole call: used, retry_after_us, reset_after_us in 7 bytes each, big endian, and the place.
    if used then
      if not place_s then
        if short then return pack('>I7I7I7', used, retry, reset) end
        return { retry == 0 and 1 or 0, used, retry, reset, '' }
      end
      local lasts = reset + window
      if window < 1e7 then lasts = reset + 1e7 end
      if injected then lasts = 3.6e9 elseif lasts > 1e15 then lasts = 1e15 end
      lasts = string.format('%d', -floor(-lasts / 1000))
      if text then call('SET', key, text, 'PX', lasts) else call('PEXPIRE', key, lasts) end
      if short then
        local answer = pack('>I7I7I7I6I5I3', used, retry, reset, generation, place_s, place_us)
        if place_rest ~= '' then answer = answer .. place_rest end
        return answer
      end
      return { 1, used, retry, reset, pack('>I6I5I3', generation, place_s, place_us) .. place_rest }
    end
  end
end
