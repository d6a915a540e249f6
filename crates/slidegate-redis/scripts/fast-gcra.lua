-- gcra, the common case: see fast.lua and gcra.lua.
local as_of, backlog, given_back
if units * window >= 4503599627370496 then
  -- Not common.
elseif size == 0 then
  generation, as_of, backlog, given_back = ARGV[2] + 0, 0, 0, 0
elseif size == 55 then
  local signature, kept, drains, drawn, length, s, us, high, low, given =
    unpack('>I5xxI6I5I6I4I5I3I6I6I7', value)
  if signature == 357673533702 and kept == window and length == 27 and drains == units and high < 16 then
    generation, as_of, backlog, given_back = drawn, s * 1e6 + us, high * 281474976710656 + low, given
    head = sub(value, 1, 24)
  end
end
if generation then
  local begins = as_of - now
  if begins < 0 then
    backlog = backlog + begins * units
    if backlog < 0 then backlog = 0 end
    begins, as_of = 0, now
  end
  local excess = backlog - (units - cost) * window
  if excess > 0 then
    retry = begins - floor(-excess / units)
  elseif charges then
    backlog = backlog + cost * window
    place_s = floor(as_of / 1e6)
    place_us = as_of - place_s * 1e6
    local high = floor(backlog / 281474976710656)
    local low = backlog - high * 281474976710656
    head = head or pack('>I5I2I6I5I6', 357673533702, 0, window, units, generation)
    text = head .. pack('>I4I5I3I6I6I7', 27, place_s, place_us, high, low, given_back)
    place_rest = '\0\0\0\0' .. sub(text, 37, 48) .. '\0' .. sub(text, 49)
  end
  used = -floor(-backlog / window)
  if backlog > 0 then reset = begins - floor(-backlog / units) end
end
