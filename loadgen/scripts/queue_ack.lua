-- An entry that was taken is done. KEYS: those taken, payloads. ARGV: id.
local done = redis.call('zrem', KEYS[1], ARGV[1])
if done == 1 then
  redis.call('hdel', KEYS[2], ARGV[1])
end
return done
