package main

// Workloads of limitkv's own commands. The server's clock decides. So half of the limiters are strict and half generous, and
// half of the requests are refused however fast the server is.

func nativeWorkloads() []*workload {
	var list []*workload
	for _, algorithm := range []string{"GCRA", "LOG", "WINDOW", "FIXED"} {
		name := map[string]string{"GCRA": "gcra", "LOG": "log", "WINDOW": "window", "FIXED": "fixed"}[algorithm]
		list = append(list, &workload{
			name: "rl.acquire." + name, does: "RL.ACQUIRE of a limiter with a rule " + algorithm, own: true, keys: 1000,
			prepare: filling([]string{"RL.SET", "limiter:######", algorithm, "10", "1000000"}, []string{"RL.SET", "limiter:######", algorithm, "10", "1"}),
			maker:   atRandom("RL.ACQUIRE", "limiter:######"),
			refused: startsWith1,
		})
	}
	return append(list, &workload{
		name: "rl.acquire.redisson", does: "RL.ACQUIRE of a limiter of Redisson's", own: true, keys: 1000,
		prepare: filling([]string{"HSET", "limiter:######", "rate", "10", "type", "0", "interval", "1000000"},
			[]string{"HSET", "limiter:######", "rate", "10", "type", "0", "interval", "1"}),
		maker:   atRandom("RL.ACQUIRE", "limiter:######"),
		refused: startsWith1,
	}, &workload{
		name: "cl.throttle", does: "CL.THROTTLE of a limiter", own: true, keys: 1000,
		maker: func(o *setup, connection uint64) maker {
			strict := command("CL.THROTTLE", "throttle:######", "9", "10", "1000")
			generous := command("CL.THROTTLE", "throttle:######", "9", "1000", "1")
			rnd, n := o.random(connection), uint64(o.keys)
			return func(b []byte, _ uint64) []byte {
				i := rnd.below(n)
				if i%2 == 0 {
					return strict.append(b, i)
				}
				return generous.append(b, i)
			}
		},
		refused: startsWith1,
	}, &workload{
		name: "dq.add", does: "DQ.ADD to one of 100 delay queues", own: true, keys: queues,
		maker: atRandom("DQ.ADD", queueName, valueArg),
	}, &workload{
		name: "dq.pop", does: "DQ.POP of 100 delay queues, of which half have something due", own: true, keys: messagesQueued,
		drains:   true,
		requests: func(keys int) uint64 { return uint64(keys) * 18 / 10 },
		prepare: func(c *wire, o *setup) error {
			if err := fillQueues(c, 0, 2, 2*o.keys/queues, 1); err != nil { // due long ago
				return err
			}
			return fillQueues(c, 1, 2, 1000, 4*epochMillis)
		},
		maker: func(o *setup, connection uint64) maker {
			p, rnd := command("DQ.POP", queueName), o.random(connection)
			return func(b []byte, _ uint64) []byte { return p.append(b, rnd.below(queues)) }
		},
		refused: isNull,
		outside: func(o *setup) outsideLoad {
			return outsideLoad{commands: [][]string{{"DQ.POP", outsideQueue}}, keys: queues, requests: outsidePolls}
		},
	})
}
