-- Takes permits of a limiter in the manner of Redisson: the permits left are in
-- one key, those that are out in a sorted set by the time they were taken.
-- KEYS: limiter, {name}:value, {name}:value:client, {name}:permits,
-- {name}:permits:client. ARGV: permits, now in ms, a random number.
-- nil = granted, an integer = ms to wait.
local rate = redis.call('hget', KEYS[1], 'rate')
local interval = redis.call('hget', KEYS[1], 'interval')
local kind = redis.call('hget', KEYS[1], 'type')
assert(rate ~= false and interval ~= false and kind ~= false, 'the limiter is not defined')
local left, out = KEYS[2], KEYS[4]
if kind == '1' then
  left, out = KEYS[3], KEYS[5]
end
assert(tonumber(rate) >= tonumber(ARGV[1]), 'more permits than the rate')
local available = redis.call('get', left)
if available == false then
  redis.call('set', left, rate)
  redis.call('zadd', out, ARGV[2], struct.pack('fI', ARGV[3], ARGV[1]))
  redis.call('decrby', left, ARGV[1])
  return nil
end
local back = redis.call('zrangebyscore', out, 0, tonumber(ARGV[2]) - interval)
local released = 0
for _, entry in ipairs(back) do
  local _, permits = struct.unpack('fI', entry)
  released = released + permits
end
if released > 0 then
  redis.call('zrem', out, unpack(back))
  available = tonumber(available) + released
  redis.call('set', left, available)
end
if tonumber(available) < tonumber(ARGV[1]) then
  local from = tonumber(ARGV[2]) - interval
  local oldest = redis.call('zrangebyscore', out, '(' .. from, tonumber(ARGV[2]), 'withscores', 'limit', 0, 1)
  local _, permits = struct.unpack('fI', oldest[1])
  return tonumber(oldest[2]) - from
end
redis.call('zadd', out, ARGV[2], struct.pack('fI', ARGV[3], ARGV[1]))
redis.call('decrby', left, ARGV[1])
return nil
