local floor, unpack, pack, call, sub = math.floor, struct.unpack, struct.pack, redis.call, string.sub
local general = redis.error_reply('SLIDEGATE general: outside the domain of this short script; call the general one, '
  .. 'which `slidegate redis script` prints without --algorithm, with the same KEYS and ARGV')
local name, parameter, edge_name = string.match(ARGV[4] or '', FORM_PATTERN)
local form_fits = name and (not parameter or parameter + 0 >= PARAMETER_MIN and parameter + 0 <= 4096)
  and (not edge_name or edge_name == '' or edge_name == 'full')
local what = { 'the time in microseconds', 'the nonce', 'the cost of a charge', 'the form of a charge',
  'the units of a limit', 'the window in microseconds' }
local least, most = { 0, 0, 0, 1, 1, 1 }, { 1e20, 281474976710655, 1e20, 0, 1e12, 3456e10 }
for at = 1, 6 do
  local text = ARGV[at] or ''
  local number = #text <= 20 and string.find(text, '^%d+$') and tonumber(text)
  local valid = number and number >= least[at] and number <= most[at]
  if not (valid or at == 1 and ARGV[1] == '' or at == 4 and form_fits) then
    local remedy = string.format('give a whole number from %.0f to %.0f', least[at], most[at])
    if at == 4 then remedy = 'give ' .. FORM .. '; the general script takes other forms' end
    return redis.error_reply(string.format('SLIDEGATE arguments: ARGV[%d], %s, is %s; %s', at, what[at],
      ARGV[at] and 'wrong' or 'missing', remedy))
  end
end
local key, value_key, cost, units, window_us = KEYS[1], KEYS[1], ARGV[3] + 0, ARGV[5] + 0, ARGV[6] + 0
local time = ARGV[1] == '' and call('TIME')
local injected, now_us = not time, time and time[1] * SECOND_US + time[2] or tonumber(ARGV[1])
if #KEYS ~= 1 or #ARGV > 6 or cost > units or now_us >= ORIGIN_MOVES_S * SECOND_US then return general end
local value = redis.pcall('GETRANGE', key, '0', NEEDED_LAST)
if type(value) == 'table' then return general end
local size, head, HEAD_FORMAT, place_rest = #value, nil, '>I5I2I6I5I6', ''
local generation, used, retry_after_us, reset_after_us, text, place_s, place_us = nil, nil, 0, 0, nil, nil, nil
