-- Adds an entry to a queue. KEYS: queue, a sorted set by due time in
-- milliseconds; payloads, a hash. ARGV: due time, id, payload.
redis.call('hset', KEYS[2], ARGV[2], ARGV[3])
return redis.call('zadd', KEYS[1], ARGV[1], ARGV[2])
