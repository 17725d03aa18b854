-- Takes the message that has been due longest. KEYS: queue, a sorted set by due
-- time in seconds. ARGV: now in seconds.
local head = redis.call('zrange', KEYS[1], 0, 0, 'WITHSCORES')
if head and head[2] and tonumber(head[2]) <= tonumber(ARGV[1]) then
  redis.call('zrem', KEYS[1], head[1])
  return head[1]
end
return nil
