-- Time: one reading of the clock, as a number that is exact.
--
-- ARGV[1]: microseconds since 1970, for tests and replays; empty: the server's TIME, read once.
--
-- Instants are doubles: microseconds after `origin`, a whole second. Before the year 2252 `origin` is 1970 itself;
-- later it moves along, so that all that is compared with `now` stays far below 2^53. Stored instants are seconds
-- and microseconds, in 5 + 3 bytes.
local floor, unpack, pack, call, sub = math.floor, struct.unpack, struct.pack, redis.call, string.sub
local injected = ARGV[1] ~= ''
local origin, now, seconds, micros = 0, nil, nil, nil
if injected then
  now = ARGV[1] + 0
  if now >= 8.9e15 then
    seconds, micros = sub(ARGV[1], 1, -7) + 0, sub(ARGV[1], -6) + 0
  else
    seconds = floor(now / 1e6)
    micros = now - seconds * 1e6
  end
else
  local time = call('TIME')
  seconds, micros = time[1] + 0, time[2] + 0
  now = seconds * 1e6 + micros
end
if seconds >= 8.9e9 then
  origin = seconds - 4e9
  now = 4e15 + micros
end
