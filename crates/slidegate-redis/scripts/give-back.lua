-- give-back: takes back charges of an admission that was not completed. Nobody has its receipt, so nothing is recorded.
--
-- KEYS   the states of the charges
-- ARGV   as of `refund`
-- Reply  as of `refund`
-- TTL    states: see codec.lua
-- Commands per call: TIME unless the time is given; per charge GETRANGE, and SET if it gave something back.
local actual, first, recorded = 0, 7, false
