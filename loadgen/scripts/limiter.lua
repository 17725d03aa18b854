-- A counter per window that begins with the first request. KEYS: counter.
-- ARGV: window in milliseconds.
local n = redis.call('incr', KEYS[1])
if n == 1 then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return n
