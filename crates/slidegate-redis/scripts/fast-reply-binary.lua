-- The reply of the fast path to our own store: one string instead of a list of five, which saves a tenth of the time of
-- the whole call. used, retry_after_us, reset_after_us in 7 bytes each, big endian, and the place.
if used then
  if not place_s then return pack('>I7I7I7', used, retry_after_us, reset_after_us) end
  local reply = pack('>I7I7I7I6I5I3', used, retry_after_us, reset_after_us, generation, place_s, place_us)
  if place_rest ~= '' then reply = reply .. place_rest end
  return reply
end
