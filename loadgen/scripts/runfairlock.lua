-- Gives a fair lock back, and tells who is first in its line when it is free. KEYS: lock, line, until when each waits,
-- channel. ARGV: lease in ms, owner, now in ms.
while true do
  local first = redis.call('lindex', KEYS[2], 0)
  if first == false then break end
  local till = redis.call('zscore', KEYS[3], first)
  if till == false or tonumber(till) > tonumber(ARGV[3]) then break end
  redis.call('zrem', KEYS[3], first)
  redis.call('lpop', KEYS[2])
end
if redis.call('exists', KEYS[1]) == 0 then
  return 1
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
local first = redis.call('lindex', KEYS[2], 0)
if first ~= false then
  redis.call('publish', KEYS[4] .. ':' .. first, '0')
end
return 1
