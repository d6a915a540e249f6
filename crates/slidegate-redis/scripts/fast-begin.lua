-- The fast path of `check` and `peek`: one charge of one limit, on a state that is small and has the limit's geometry,
-- with products below 2^52, before the year 2252.
--
-- It answers as the general part does, to the byte. It has no functions, because a script makes its functions anew in
-- every call. What it does not handle falls through to the general part; nothing was written then.
if #ARGV == 6 and origin == 0 then
  local key, cost, name, units, window_us = KEYS[1], ARGV[3] + 0, ARGV[4], ARGV[5] + 0, ARGV[6] + 0
  if cost <= units then
    local parameter, edge_name, value, value_key = 0, '', nil, key
    if name == 'sliding-log' then
      value = redis.pcall('GETRANGE', key, '0', NEAR_LAST)
    elseif name == 'sliding-log/sorted-set' or name == 'sliding-log/sorted-set/ms' or name == 'sliding-log/sorted-set/s'
    then
      name, value_key = 'sliding-log/sorted-set', key .. '%state'
      value = redis.pcall('GET', value_key) or ''
    else
      if name ~= 'sliding-counter' and name ~= 'gcra' and name ~= 'fixed-window' then
        -- nil for a form with several limits or a shadow rule.
        name, parameter, edge_name = string.match(name, '^([a-z-]+),(%d+),?([a-z]*)$')
      end
      value = name and redis.pcall('GET', key) or ''
    end
    -- A value of another type: the general part handles or reports it.
    if type(value) == 'table' then name = nil end
    local size = #value
    -- The first UNCHANGED_BYTES of the value, where they stay as they are.
    local head
    local HEAD_FORMAT = '>I5I2I6I5I6'
    -- The answer of an algorithm: `used` only if the fast path handles the case. If it charged, the instant and the
    -- rest of the place, and the `text` to store unless it was written already.
    local generation, used, retry_after_us, reset_after_us, text, place_s, place_us = nil, nil, 0, 0, nil, nil, nil
    local place_rest = ''
