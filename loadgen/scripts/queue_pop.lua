-- Takes the entry that has been due longest, for a while. KEYS: queue; those
-- taken, a sorted set by the end of the lease; payloads. ARGV: now and the
-- lease in milliseconds.
local ids = redis.call('zrangebyscore', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
if #ids == 0 then
  return false
end
redis.call('zrem', KEYS[1], ids[1])
redis.call('zadd', KEYS[2], ARGV[1] + ARGV[2], ids[1])
return {ids[1], redis.call('hget', KEYS[3], ids[1])}
