-- The common case of `check` and `peek`: one ask of one limit, on a state that fits and is small, with products below
-- 2^53, before the year 2252.
--
-- It says what the general part that follows says, to the byte; but functions cost at every call, because they are made
-- anew, so it has none. Whatever is not common falls through: nothing was written then.
if #ARGV == 6 and origin == 0 then
  local key, cost, name, units, window = KEYS[1], ARGV[3] + 0, ARGV[4], ARGV[5] + 0, ARGV[6] + 0
  if cost <= units then
    local parameter, edge_name, value = 0, '', nil
    if name == 'sliding-log' then
      value = redis.pcall('GETRANGE', key, '0', '511')
    else
      if name ~= 'sliding-counter' and name ~= 'gcra' and name ~= 'fixed-window' then
        -- Of what has more to say than this, nothing is common.
        name, parameter, edge_name = string.match(name, '^([a-z-]+),(%d+),?([a-z]*)$')
      end
      value = name and redis.pcall('GET', key) or ''
    end
    -- Of another type it is for the general part to say what is wrong, if anything is.
    if type(value) == 'table' then name = nil end
    local size = #value
    -- The first 24 bytes of the value, if they stay what they are.
    local head
    -- What the algorithm answers: `used` only if this was a common case, and if it charged the instant and the rest of the
    -- place, and `text`, what is to be stored, unless it has written that itself.
    local generation, used, retry, reset, text, place_s, place_us = nil, nil, 0, 0, nil, nil, nil
    local place_rest = ''
