-- Defines a limiter of packed permits: rate per interval. Replies how many of the fields were new.
-- KEYS[1] definition; ARGV field and value in turn.
local new = 0
for i = 1, #ARGV, 2 do
  new = new + redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
end
return new
