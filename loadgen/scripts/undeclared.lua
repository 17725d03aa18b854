-- A key that KEYS does not have.
return redis.call('incr', 'undeclared')
