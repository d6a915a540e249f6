--         fewer requests in the window than entries: nothing is merged
local FORM, FORM_PATTERN, PARAMETER_MIN, NEEDED_LAST = 'compact-log,64', '^(compact%-log),(%d+),?$', 4, '-1'
