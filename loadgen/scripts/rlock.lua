-- Takes a lock that is free, or once more if it is the owner's. KEYS: lock. ARGV: lease in ms, owner.
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 1
end
return redis.call('pttl', KEYS[1])
