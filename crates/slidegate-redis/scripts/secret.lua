-- The secret that receipts are signed with: the stored one, else the caller's, which is then stored. It has no TTL,
-- because receipts of any window may be out.
local secret = redis.call('GET', KEYS[1])
if not secret then
  redis.call('SET', KEYS[1], ARGV[1])
  secret = ARGV[1]
end
return secret
