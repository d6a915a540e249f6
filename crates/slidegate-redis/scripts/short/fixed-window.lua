--         the units may differ from those at the last charge
local FORM, FORM_PATTERN, PARAMETER_MIN, NEEDED_LAST = 'fixed-window', '^(fixed%-window)$', 0, '-1'
