-- Numbers that several parts share. Such lines are replaced by their values when a script is joined: see src/scripts.rs.
local MILLISECOND_US, SECOND_US = 1e3, 1e6
local ORIGIN_MOVES_S = 8.9e9 -- the year 2252; two of the longest windows later microseconds are below 2^53
local EXACT = 9007199254740992 -- 2^53: a double holds every whole number up to here
local PRODUCT_MAX = 4503599627370496 -- 2^52: the fast path leaves larger products to the wide numbers
local WIDE_BASE = 281474976710656 -- 2^48: a wide number is high x 2^48 + low, see wide.lua
-- How many values 1, 2, 4 and 7 bytes can hold. 7 bytes are used up to 2^52, so that a sum of two stays exact.
local RANGE_1, RANGE_2, RANGE_4, RANGE_7 = 256, 65536, 4294967296, 4503599627370496
-- 2^28 s, 8.5 years: logs store stamps modulo this. Windows have 400 days at most.
local CYCLE_S, CYCLE_US = 268435456, 268435456e6
local TICK_BYTES = 6 -- of such a stamp
-- A value of one limit: 4 bytes of magic, version and count; 20 up to the generation; 4 length of the body; the body.
local UNCHANGED_BYTES = 24 -- the same in every write under one limit
local BODY_START = 28
local NEAR_BYTES, NEAR_LAST = 512, '511' -- of a value are read at first: Redis hashes every byte that a script reads
local LONG_FLAG = 128 -- added to the byte of the width in a long log, see sliding-log.lua
local LONG_BODY_BYTES = 48
local RING_SHRINK_MIN = 256 -- a ring of more slots is made anew when less than 1 slot in RING_SPARSE is filled
local RING_SPARSE = 8
-- TTL rule: a key outlives its use by its window, but at least by 10 s, and lives 31 years at most; 1 h in tests.
local MARGIN_MIN_US, LIFE_MAX_US, LIFE_INJECTED_US = 1e7, 1e15, 3.6e9
