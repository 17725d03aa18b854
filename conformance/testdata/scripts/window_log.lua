-- A sliding window that keeps each request: entries older than the window are dropped, then the rest are counted.
-- KEYS[1] log; ARGV[1] now in ms, ARGV[2] window in ms, ARGV[3] limit, ARGV[4] member. Replies {allowed, wait in ms}.
local log, now, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', log, '-inf', '(' .. (now - window))
if redis.call('ZCARD', log) < tonumber(ARGV[3]) then
  redis.call('ZADD', log, now, ARGV[4])
  redis.call('PEXPIRE', log, window * 100000)
  return {1, 0}
end
local oldest = redis.call('ZRANGE', log, 0, 0, 'WITHSCORES')
return {0, oldest[2] + window - now}
