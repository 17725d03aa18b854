-- Gives a lock back once. KEYS[1] lock; ARGV[1] holder. Replies nil for a stranger, 0 when still held, 1 when free.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
