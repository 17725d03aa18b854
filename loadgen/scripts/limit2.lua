-- A counter per window that sets the end where there is none. KEYS: counter.
-- ARGV: window in seconds.
local counter, window = KEYS[1], ARGV[1]
local n = redis.call('incr', counter)
if redis.call('ttl', counter) == -1 then
  redis.call('expire', counter, window)
end
return n
