-- Time: the clock is read once, as a number that is exact.
--
-- ARGV[1]: microseconds since 1970, for tests and replays; empty: the server's TIME.
--
-- Instants are doubles: microseconds after `origin`, a whole second. Before the year 2252 `origin` is 1970 itself.
-- Later it moves along with the clock, so that instants and windows after them stay below 2^53. Stored instants are
-- seconds and microseconds since 1970, in 5 + 3 bytes.
local floor, unpack, pack, call, sub = math.floor, struct.unpack, struct.pack, redis.call, string.sub
local ORIGIN_DISTANCE_S = 4e9 -- 127 years: more than any state lives
local injected = ARGV[1] ~= ''
local origin, now_us, seconds, micros = 0, nil, nil, nil
if injected then
  now_us = ARGV[1] + 0
  if now_us >= ORIGIN_MOVES_S * SECOND_US then
    seconds, micros = sub(ARGV[1], 1, -7) + 0, sub(ARGV[1], -6) + 0
  else
    seconds = floor(now_us / SECOND_US)
    micros = now_us - seconds * SECOND_US
  end
else
  local time = call('TIME')
  seconds, micros = time[1] + 0, time[2] + 0
  now_us = seconds * SECOND_US + micros
end
if seconds >= ORIGIN_MOVES_S then
  origin = seconds - ORIGIN_DISTANCE_S
  now_us = ORIGIN_DISTANCE_S * SECOND_US + micros
end
