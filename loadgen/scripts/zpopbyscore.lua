-- Takes the job that is due first, if one is. KEYS: schedule, a sorted set.
-- ARGV: now.
local jobs = redis.call('zrangebyscore', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
if jobs[1] then
  redis.call('zrem', KEYS[1], jobs[1])
end
return jobs[1]
