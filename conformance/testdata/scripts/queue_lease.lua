-- Moves the first due entry to a set of leases and counts the attempt. KEYS[1] queue, KEYS[2] leases, KEYS[3] attempts;
-- ARGV[1] now, ARGV[2] lease. Replies {member, attempt}, or false.
local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if not head[1] or tonumber(head[2]) > tonumber(ARGV[1]) then
  return false
end
redis.call('ZREM', KEYS[1], head[1])
redis.call('ZADD', KEYS[2], ARGV[1] + ARGV[2], head[1])
return {head[1], redis.call('HINCRBY', KEYS[3], head[1], 1)}
