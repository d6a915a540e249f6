-- Refuses KEYS and ARGV that are not as the verb documents them, and names the first that is wrong, before anything is
-- read. `takes` says how many keys and charges there are, and what stands before the charges and beside each limit.
--
-- Only in the scripts that other programs call: our own store sends what it has checked, and the fast path of `check`
-- and `peek` would pay for it in every call.
local LIMIT_MAX, WINDOW_MAX_US, LIMITS_MAX = 1e12, 3456e10, 16
local NONCE_MAX = 281474976710655 -- 2^48 - 1
local DIGITS_MAX = 20
local ACTUAL_INDEX = 7 -- of the units really spent
local PLACE_DIGITS, GCRA_PLACE_DIGITS = 28, 76
local EXCESS_LIMITS_MAX = 16 -- a settlement charges at most this many limits above the cost
do
  local valid, why = pcall(function()
    local at = 0

    local function refuse(name, remedy)
      local problem = ARGV[at] and 'wrong' or 'missing'
      error(string.format('SLIDEGATE arguments: ARGV[%d], %s, is %s; %s', at, name, problem, remedy), 0)
    end

    -- Checks the next argument, a whole number. It may be empty if `empty` says what that means.
    local function check_whole(name, min, max, empty)
      at = at + 1
      local text = ARGV[at] or ''
      if empty and ARGV[at] == '' then return end
      local number = #text <= DIGITS_MAX and string.find(text, '^%d+$') and tonumber(text)
      if not number or number < min or max and number > max then
        local range = max and string.format('from %.0f to %.0f', min, max) or 'of at most 20 digits'
        refuse(name, 'give a whole number ' .. range .. (empty or ''))
      end
    end

    -- Checks the next two arguments, an instant. Both may be empty.
    local function check_instant(name, empty)
      check_whole('the seconds ' .. name, 0, nil, empty)
      local is_empty = ARGV[at] == ''
      check_whole('the microseconds of that second', 0, 999999, is_empty and empty)
      if is_empty and ARGV[at] ~= '' then
        refuse('the microseconds of that second', 'give nothing, as for the seconds')
      end
    end

    -- Reads the next argument, the form of a charge: the algorithm, and the number of limits.
    local function read_form()
      at = at + 1
      local text = ARGV[at] or ''
      local name, parameter, edge, count, shadow = text, '0', '', '', ''
      if string.find(text, ',', 1, true) then
        name, parameter, edge, count, shadow =
          string.match(text, '^([^,]+),(%d+),?([a-z]*),?(%d*),?([a-z]*)$')
      end
      local min, max = 0, 0
      if name == 'compact-log' then min, max = 4, 4096
      elseif name == 'sliding-buckets' then min, max = 1, 4096
      elseif name ~= 'sliding-log' and name ~= 'sliding-log/sorted-set' and name ~= 'sliding-log/sorted-set/ms'
        and name ~= 'sliding-log/sorted-set/s' and name ~= 'sliding-counter' and name ~= 'fixed-window'
        and name ~= 'gcra' then
        refuse('the form of a charge', 'give the name of an algorithm, for example sliding-log')
      end
      parameter, count = tonumber(parameter), count == '' and 1 or tonumber(count)
      if parameter < min or parameter > max then
        refuse('the form of a charge', max == 0 and 'this algorithm has the parameter 0'
          or string.format('give a number from %d to %d after the name and a comma', min, max))
      end
      local has_edge = edge == 'full' or edge == 'interpolated' or edge == 'dropped'
      if edge ~= '' and not (has_edge and name == 'sliding-buckets') then
        refuse('the form of a charge', 'give sliding-buckets the edge full, interpolated or dropped, and others none')
      end
      if count < 1 or count > LIMITS_MAX or (shadow ~= '' and shadow ~= 'shadow') then
        refuse('the form of a charge', 'give 1 to 16 limits, then `shadow` or nothing')
      end
      return name, count
    end

    if #KEYS < takes.keys_min or #KEYS > takes.keys_max then
      error(string.format('SLIDEGATE arguments: KEYS has %d keys; give %s', #KEYS, takes.keys), 0)
    end
    check_whole('the time in microseconds', 0, nil, ", or nothing for Redis's own time")
    check_whole('the nonce', 0, NONCE_MAX)
    if takes.receipt then
      check_instant('at which the receipt expires', ', or nothing to take it from the places')
      check_instant('of the latest time', ', or nothing if it was not kept')
    end
    local actual, cost_settled
    if takes.actual then
      check_whole('the units really spent', 0, nil, ', or nothing to ask only')
      actual = tonumber(ARGV[at])
    end
    for _ = 1, takes.charges do
      check_whole('the cost of a charge', 0)
      local cost, units_min = tonumber(ARGV[at]), LIMIT_MAX
      cost_settled = cost_settled or cost
      if actual and cost ~= cost_settled then refuse('the cost of a charge', 'settle charges of one cost') end
      local name, count = read_form()
      for _ = 1, count do
        check_whole('the units of a limit', 1, LIMIT_MAX)
        if tonumber(ARGV[at]) < units_min then units_min = tonumber(ARGV[at]) end
        check_whole('the window in microseconds', 1, WINDOW_MAX_US)
        if takes.receipt then
          at = at + 1
          local digits, text = name == 'gcra' and GCRA_PLACE_DIGITS or PLACE_DIGITS, ARGV[at] or ''
          if #text ~= digits or not string.find(text, '^%x+$') then
            refuse('the place of a charge',
              string.format('give the %d hexadecimal digits that `check` replied', digits))
          end
        end
      end
      if actual and actual - cost > EXCESS_LIMITS_MAX * units_min then
        at = ACTUAL_INDEX
        refuse('the units really spent', string.format('give at most %.0f, the cost and 16 times the limit',
          cost + EXCESS_LIMITS_MAX * units_min))
      end
    end
    if #ARGV > at then
      error(string.format('SLIDEGATE arguments: ARGV[%d] follows the last charge; give %s', at + 1, takes.keys), 0)
    end
  end)
  if not valid then return redis.error_reply(why) end
end
