-- Takes the first message of a delay queue that is due, if one is: a sorted set of messages by the second they are due in.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
if #due == 0 then
  return nil
end
redis.call('ZREM', KEYS[1], due[1])
return due[1]
