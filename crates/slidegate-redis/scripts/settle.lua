local actual, first, recorded = tonumber(ARGV[7]), 8, true
