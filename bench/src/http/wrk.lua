-- Sends requests, each for another key. Arguments: the number of the first key, the number of keys, and the bytes of a
-- request before and after the number of its key.
local number, keys, before, after

function init(args)
  number, keys, before, after = tonumber(args[1]), tonumber(args[2]), args[3], args[4]
end

function request()
  local key = number % keys
  number = number + 1
  return before .. string.format("%07d", key) .. after
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  io.write(string.format("slice %d %d %d %d %d\n", summary.requests, summary.duration, failed,
    latency:percentile(50), latency:percentile(99)))
end
