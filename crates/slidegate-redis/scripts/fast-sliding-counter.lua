-- sliding-counter, the common case: see fast.lua and sliding-counter.lua.
local start, previous, current
if units * window >= 4503599627370496 then
  -- Not common.
elseif size == 0 then
  generation, start, previous, current = ARGV[2] + 0, 0, 0, 0
elseif size == 50 then
  local signature, kept, kept_units, drawn, length, s, us, older, newer =
    unpack('>I5xxI6I5I6I4I5I3I7I7', value)
  if signature == 357673533700 and kept == window and length == 22 and older * window < 4503599627370496 then
    generation, start, previous, current = drawn, s * 1e6 + us, older, newer
    if kept_units == units then head = sub(value, 1, 24) end
  end
end
if generation then
  local begins = now - now % window
  if begins > start then
    if begins - start == window then previous = current else previous = 0 end
    start, current = begins, 0
  end
  local overlap = window
  if now > start then overlap = window - (now - start) end
  local room = units - current - cost
  if room < 0 then
    retry = start + 2 * window - floor((units - cost) * window / current) - now
  elseif previous * overlap > room * window then
    retry = start + window - floor(room * window / previous) - now
  elseif charges then
    current = current + cost
    place_s = floor(start / 1e6)
    place_us = start - place_s * 1e6
    head = head or pack('>I5I2I6I5I6', 357673533700, 0, window, units, generation)
    text = head .. pack('>I4I5I3I7I7', 22, place_s, place_us, previous, current)
  end
  used = current - floor(-previous * overlap / window)
  if current > 0 then reset = start + 2 * window - now elseif previous > 0 then reset = start + window - now end
end
