-- fixed-window, the common case: see fast.lua and fixed-window.lua.
local start, count
if size == 0 then
  generation, start, count = ARGV[2] + 0, 0, 0
elseif size == 43 then
  local signature, kept, kept_units, drawn, length, s, us, counted = unpack('>I5xxI6I5I6I4I5I3I7', value)
  if signature == 357673533701 and kept == window and length == 15 then
    generation, start, count = drawn, s * 1e6 + us, counted
    if kept_units == units then head = sub(value, 1, 24) end
  end
end
if generation then
  local begins = now - now % window
  if begins > start then start, count = begins, 0 end
  if count + cost > units then
    retry = start + window - now
  elseif charges then
    count = count + cost
    place_s = floor(start / 1e6)
    place_us = start - place_s * 1e6
    head = head or pack('>I5I2I6I5I6', 357673533701, 0, window, units, generation)
    text = head .. pack('>I4I5I3I7', 15, place_s, place_us, count)
  end
  used = count
  if count > 0 then reset = start + window - now end
end
