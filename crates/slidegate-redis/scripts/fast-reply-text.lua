-- The reply: whole numbers, and the place in hexadecimal digits.
if used then
  local place = ''
  if place_s then
    place = string.format('%012x%010x%06x', generation, place_s, place_us)
    if place_rest ~= '' then place = place .. string.format('%08x%012x%012x%016x', unpack('>I4I6I6I8', place_rest)) end
  end
  return { retry_after_us == 0 and 1 or 0, used, retry_after_us, reset_after_us, place }
end
