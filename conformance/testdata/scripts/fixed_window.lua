-- A fixed window: count requests, start the window with the first one.
-- KEYS[1] counter; ARGV[1] limit, ARGV[2] window in seconds. Replies {allowed, count, seconds left}.
local seen = redis.call('INCR', KEYS[1])
if seen == 1 then
  redis.call('EXPIRE', KEYS[1], tonumber(ARGV[2]))
end
local left = redis.call('TTL', KEYS[1])
if seen > tonumber(ARGV[1]) then
  return {0, seen, left}
end
return {1, seen, left}
