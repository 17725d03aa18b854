-- A loop as long as the caller says. KEYS: counter. ARGV: how often.
for i = 1, tonumber(ARGV[1]) do
  redis.call('incr', KEYS[1])
end
return 1
