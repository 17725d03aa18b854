-- A token bucket in a hash, with fractions of tokens. KEYS[1] bucket; ARGV[1] capacity, ARGV[2] tokens per second,
-- ARGV[3] now in ms, ARGV[4] cost. Replies {allowed, tokens left as text, ms until enough}.
local capacity, speed = tonumber(ARGV[1]), tonumber(ARGV[2]) / 1000
local now, cost = tonumber(ARGV[3]), tonumber(ARGV[4])
local tokens, stamp = unpack(redis.call('HMGET', KEYS[1], 'tokens', 'stamp'))
tokens = math.min(capacity, (tonumber(tokens) or capacity) + math.max(0, now - (tonumber(stamp) or now)) * speed)
local allowed, wait = 0, 0
if tokens >= cost then
  allowed, tokens = 1, tokens - cost
else
  wait = math.ceil((cost - tokens) / speed)
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'stamp', now)
return {allowed, tostring(tokens), wait}
