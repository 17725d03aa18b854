-- Takes permits from a limiter whose grants are packed into the members of a sorted set, and gives back what has run
-- out. KEYS[1] definition, KEYS[2] what is left, KEYS[3] grants by time; ARGV[1] permits, ARGV[2] now in ms,
-- ARGV[3] anything unique. Replies nil when granted, else the ms to wait.
local definition = redis.call('HMGET', KEYS[1], 'rate', 'interval')
assert(definition[1], 'the limiter is not defined')
local rate, interval = tonumber(definition[1]), tonumber(definition[2])
local want, now = tonumber(ARGV[1]), tonumber(ARGV[2])
assert(want <= rate, 'more permits than the limiter ever has')

local left = redis.call('GET', KEYS[2])
if not left then
  redis.call('SET', KEYS[2], rate)
else
  local gone = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - interval)
  local returned = 0
  for _, grant in ipairs(gone) do
    local _, permits = struct.unpack('fI', grant)
    returned = returned + permits
  end
  if #gone > 0 then
    redis.call('ZREM', KEYS[3], unpack(gone))
    redis.call('SET', KEYS[2], left + returned)
  end
  if tonumber(redis.call('GET', KEYS[2])) < want then
    local first = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. (now - interval), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    return first[2] + interval - now
  end
end
redis.call('ZADD', KEYS[3], now, struct.pack('fI', ARGV[3], want))
redis.call('DECRBY', KEYS[2], want)
return nil
