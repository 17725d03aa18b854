-- Takes up to n due entries of a delay queue. KEYS[1] queue; ARGV[1] now, ARGV[2] n. Replies the members.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for i = 1, #due do
  redis.call('ZREM', KEYS[1], due[i])
end
return due
