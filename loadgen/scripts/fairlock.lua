-- Takes a lock that is free, if nobody else is first in its line, or once more if it is the owner's. Who waits in the line
-- and has run out of patience is put out of it first. KEYS: lock, line, until when each waits. ARGV: lease in ms, owner,
-- now in ms, patience in ms.
while true do
  local first = redis.call('lindex', KEYS[2], 0)
  if first == false then break end
  local till = redis.call('zscore', KEYS[3], first)
  if till == false or tonumber(till) > tonumber(ARGV[3]) then break end
  redis.call('zrem', KEYS[3], first)
  redis.call('lpop', KEYS[2])
end
if redis.call('exists', KEYS[1]) == 0 and
  (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], ARGV[2])
  local others = redis.call('zrange', KEYS[3], 0, -1)
  for i = 1, #others do
    redis.call('zincrby', KEYS[3], -tonumber(ARGV[4]), others[i])
  end
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 1
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 1
end
return 0
