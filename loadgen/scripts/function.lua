#!lua name=benchmark
redis.register_function('benchmark_incr', function(keys) return redis.call('incr', keys[1]) end)
