--         units x window below 2^52 (52,000 units a day)
local FORM, FORM_PATTERN, PARAMETER_MIN, NEEDED_LAST = 'sliding-counter', '^(sliding%-counter)$', 0, '-1'
