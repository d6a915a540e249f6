--         at most 57 requests in the window, 35 where the units pass 65,535: a state of 512 bytes
local FORM, FORM_PATTERN, PARAMETER_MIN, NEEDED_LAST = 'sliding-log', '^(sliding%-log)$', 0, '511'
