-- A log of the requests in the window. KEYS: window, a sorted set by time.
-- ARGV: the window's start, now, limit, a member of its own for the request.
redis.call('zremrangebyscore', KEYS[1], 0, ARGV[1])
local inside = redis.call('zcard', KEYS[1])
if inside == nil or inside < tonumber(ARGV[3]) then
  redis.call('zadd', KEYS[1], ARGV[2], ARGV[4])
  return 0
end
return 1
