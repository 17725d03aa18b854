-- Takes a lock that nobody holds. KEYS: lock. ARGV: holder, seconds to live.
if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then
  return redis.call('expire', KEYS[1], ARGV[2])
end
return 0
