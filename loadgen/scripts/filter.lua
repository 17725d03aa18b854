-- A counter per window: how many requests came, and when the first did, the
-- window's end. KEYS: counter. ARGV: threshold, window in seconds.
local count = redis.call('incr', KEYS[1])
if count and tonumber(count) > tonumber(ARGV[1]) then
  return count
end
if tonumber(count) == 1 then
  redis.call('expire', KEYS[1], ARGV[2])
end
return count
