-- Defines a limiter. KEYS: limiter, a hash. ARGV: rate, interval in ms, type.
local key = KEYS[1]
redis.call('hsetnx', key, 'rate', ARGV[1])
redis.call('hsetnx', key, 'interval', ARGV[2])
return redis.call('hsetnx', key, 'type', ARGV[3])
