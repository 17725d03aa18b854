-- Keys that KEYS does not have.
for i = 1, 3 do
  redis.call('incr', 'undeclared' .. i)
end
return 1
