--         the same number of buckets, and the edge `full`
local FORM, FORM_PATTERN = 'sliding-buckets,60', '^(sliding%-buckets),(%d+),?([a-z]*)$'
local PARAMETER_MIN, NEEDED_LAST = 1, '-1'
