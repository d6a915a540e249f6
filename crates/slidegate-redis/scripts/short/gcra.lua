--         units x window below 2^52 (52,000 units a day), and the same units as at the last charge
local FORM, FORM_PATTERN, PARAMETER_MIN, NEEDED_LAST = 'gcra', '^(gcra)$', 0, '-1'
