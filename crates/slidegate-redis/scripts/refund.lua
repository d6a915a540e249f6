local actual, first, recorded = 0, 7, true
