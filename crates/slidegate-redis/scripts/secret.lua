-- The secret that receipts are signed with. It stays for as long as Redis keeps it: it has no end, because receipts
-- of any window may be out. Nothing is written where there is one.
local secret = redis.call('GET', KEYS[1])
if not secret then
  redis.call('SET', KEYS[1], ARGV[1])
  secret = ARGV[1]
end
return secret
