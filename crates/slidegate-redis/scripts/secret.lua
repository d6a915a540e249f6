-- The secrets that receipts are signed with, 32 bytes each, the one to sign with first. It has no TTL, because receipts of
-- any window may be out.
--
-- ARGV[1] is a secret of the caller. It is stored where there is none. If the caller has signed with it (ARGV[2] is '1'), it
-- is also added to others: those were drawn after the data of Redis was lost. Of too many the second one is dropped, which
-- was added first.
local SECRET_BYTES, SECRETS_MAX = 32, 8
local secrets = redis.call('GET', KEYS[1]) or ''
for at = 1, #secrets, SECRET_BYTES do
  if string.sub(secrets, at, at + SECRET_BYTES - 1) == ARGV[1] then
    return secrets
  end
end
local is_ours = #secrets % SECRET_BYTES == 0 and #secrets <= SECRETS_MAX * SECRET_BYTES
if secrets == '' or (ARGV[2] == '1' and is_ours) then
  if #secrets == SECRETS_MAX * SECRET_BYTES then
    secrets = string.sub(secrets, 1, SECRET_BYTES) .. string.sub(secrets, 2 * SECRET_BYTES + 1)
  end
  secrets = secrets .. ARGV[1]
  redis.call('SET', KEYS[1], secrets)
end
return secrets
