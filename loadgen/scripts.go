package main

// Script workloads: Lua scripts as used on Redis for limiting, delay queues and locks. They are written for this tool, and
// resemble scripts in use: the same calls in the same order. --scripts DIR runs the files of a folder instead.
//
// If a script gets the time from its caller, the number of the request replaces it. So the share of refusals and the amount of
// cleaning up are the same on a fast server and a slow one. If the server's clock decides (a TTL), the active users change
// with the requests, so that each makes the same number of requests on any server.

import (
	"embed"
	"os"
	"path/filepath"
	"strconv"
)

//go:embed scripts/*.lua
var ownScripts embed.FS

// scriptText returns the text of a script.
func scriptText(o *setup, name string) (string, error) {
	if o.scripts != "" {
		b, err := os.ReadFile(filepath.Join(o.scripts, name+".lua"))
		return string(b), err
	}
	b, err := ownScripts.ReadFile("scripts/" + name + ".lua")
	return string(b), err
}

// loading returns a function that loads scripts into the server.
func loading(names ...string) func(c *wire, o *setup) error {
	return func(c *wire, o *setup) error {
		for _, name := range names {
			text, err := scriptText(o, name)
			if err != nil {
				return err
			}
			sha, err := c.text("SCRIPT", "LOAD", text)
			if err != nil {
				return err
			}
			if o.shas == nil {
				o.shas = map[string]string{}
			}
			o.shas[name] = sha
		}
		return nil
	}
}

// Half of a limiter's requests are refused.
const (
	limiterRate    = 10   // permits in an interval
	limiterMillis  = 1000 // the interval
	requestsOfUser = 2 * limiterRate
)

// epochMillis is the start of the time in requests.
const epochMillis = 1_700_000_000_000

// millis returns the time of a request, chosen so that a limiter sees twice its rate.
func millis(seq uint64, limiters int) uint64 {
	return epochMillis + seq*limiterMillis/(requestsOfUser*uint64(limiters))
}

// user returns a random one of the active users. They change, so that each makes requestsOfUser requests.
func user(rnd *random, seq uint64, active int) uint64 {
	return seq/requestsOfUser + rnd.below(uint64(active))
}

// Delay queues: in each queue one message per second becomes due, and each queue is polled twice a second.
const (
	queues         = 100
	messagesQueued = 1_000_000
	queueName      = "queue:############"
)

func scriptWorkloads() []*workload {
	return []*workload{{
		name: "filter", does: "a counter with a threshold (filter.lua)", keys: 1000,
		prepare: loading("filter"),
		maker: func(o *setup, connection uint64) maker {
			p, rnd := command("EVALSHA", o.shas["filter"], "1", "filter:##########", "10", "1"), o.random(connection)
			return func(b []byte, seq uint64) []byte { return p.append(b, user(rnd, seq, o.keys)) }
		},
		outside: outsideCounter("filter", "10", "1"),
		refused: func(r *reply) bool { return r.kind == ':' && r.n > limiterRate },
	}, {
		name: "limit2", does: "a counter that sets its TTL (limit2.lua)", keys: 1000,
		prepare: loading("limit2"),
		maker: func(o *setup, connection uint64) maker {
			p, rnd := command("EVALSHA", o.shas["limit2"], "1", "limit:##########", "1"), o.random(connection)
			return func(b []byte, seq uint64) []byte { return p.append(b, user(rnd, seq, o.keys)) }
		},
		outside: outsideCounter("limit2", "1"),
		refused: func(r *reply) bool { return r.kind == ':' && r.n > limiterRate },
	}, {
		name: "consume", does: "takes what is due of 100 delay queues (consume.lua)", keys: messagesQueued,
		drains:   true,
		requests: func(keys int) uint64 { return uint64(keys) * 18 / 10 },
		prepare: func(c *wire, o *setup) error {
			if err := loading("consume")(c, o); err != nil {
				return err
			}
			return fillQueues(c, 0, 1, o.keys/queues, epochMillis/1000)
		},
		maker: func(o *setup, connection uint64) maker {
			p, rnd := command("EVALSHA", o.shas["consume"], "1", queueName, "##########"), o.random(connection)
			return func(b []byte, seq uint64) []byte {
				return p.append(b, rnd.below(queues), epochMillis/1000+seq/(2*queues))
			}
		},
		refused: isNull,
		outside: func(o *setup) outsideLoad {
			now := strconv.Itoa(epochMillis/1000 + outsidePolls/2/queues)
			return outsideLoad{commands: [][]string{{"EVALSHA", o.shas["consume"], "1", outsideQueue, now}}, keys: queues, requests: outsidePolls}
		},
	}, {
		name: "lock", does: "lock, a lock that is held, unlock by another, unlock (lock.lua, unlock.lua)", keys: 10_000,
		prepare: loading("lock", "unlock"),
		maker: func(o *setup, connection uint64) maker {
			lock := command("EVALSHA", o.shas["lock"], "1", "lock:########", "holder:#######-#", "1")
			unlock := command("EVALSHA", o.shas["unlock"], "1", "lock:########", "holder:#######-#")
			rnd, key, step := o.random(connection), uint64(0), 0
			return func(b []byte, _ uint64) []byte {
				step++
				switch step {
				case 1:
					key = rnd.below(uint64(o.keys))
					return lock.append(b, key, connection, 1)
				case 2:
					return lock.append(b, key, connection, 2)
				case 3:
					return unlock.append(b, key, connection, 2)
				}
				step = 0
				if rnd.below(256) == 0 { // never released: its TTL ends it
					return unlock.append(b, key, connection, 3)
				}
				return unlock.append(b, key, connection, 1)
			}
		},
		refused: isZero,
		outside: func(o *setup) outsideLoad {
			lock := func(holder string) []string {
				return []string{"EVALSHA", o.shas["lock"], "1", outsideLock, holder, "1"}
			}
			unlock := func(holder string) []string { return []string{"EVALSHA", o.shas["unlock"], "1", outsideLock, holder} }
			return outsideLoad{commands: [][]string{lock("holder:1"), lock("holder:2"), unlock("holder:2"), unlock("holder:1")}}
		},
	}, {
		name: "sliding_window", does: "a log of requests (sliding_window.lua)", keys: 1000,
		prepare: loading("sliding_window"),
		maker: func(o *setup, connection uint64) maker {
			p := command("EVALSHA", o.shas["sliding_window"], "1", "window:######", "#############", "#############", "10", "request:############")
			rnd := o.random(connection)
			return func(b []byte, seq uint64) []byte {
				now := millis(seq, o.keys)
				return p.append(b, rnd.below(uint64(o.keys)), now-limiterMillis, now, seq)
			}
		},
		refused: isOne,
	}, {
		name: "rate_limiter_acquire", does: "a permit of Redisson's RRateLimiter (rate_limiter_acquire.lua)", keys: 1000,
		prepare: func(c *wire, o *setup) error {
			if err := loading("rate_limiter_init", "rate_limiter_acquire")(c, o); err != nil {
				return err
			}
			return filling([]string{"EVALSHA", o.shas["rate_limiter_init"], "1", "limiter:######", "10", "1000", "0"})(c, o)
		},
		maker: func(o *setup, connection uint64) maker {
			p := command("EVALSHA", o.shas["rate_limiter_acquire"], "5", "limiter:######",
				"{limiter:######}:value", "{limiter:######}:value:client", "{limiter:######}:permits", "{limiter:######}:permits:client",
				"1", "#############", "########")
			rnd := o.random(connection)
			return func(b []byte, seq uint64) []byte {
				n := rnd.below(uint64(o.keys))
				// The random number is packed into 4 bytes; below 2^24 all are distinct.
				return p.append(b, n, n, n, n, n, millis(seq, o.keys), seq&(1<<24-1))
			}
		},
		refused: isInteger,
	}}
}

// unprovenWorkloads are scripts about which nothing is known before they run: neither their duration nor their keys.
func unprovenWorkloads() (list []*workload) {
	for _, x := range []struct {
		name, does string
		args       []string
	}{
		{"loop", "a script with a while loop (loop.lua)", []string{"1", "counter:##########"}},
		{"loop_argument", "a script that loops as often as it is told (loop_argument.lua)", []string{"1", "counter:##########", "3"}},
		{"undeclared", "a script that uses a key which it was not given (undeclared.lua)", []string{"0"}},
		{"undeclared_loop", "a script that uses keys which it was not given (undeclared_loop.lua)", []string{"0"}},
	} {
		list = append(list, &workload{
			name: x.name, does: x.does, keys: 1000, prepare: loading(x.name),
			maker: func(o *setup, connection uint64) maker {
				return atRandom(append([]string{"EVALSHA", o.shas[x.name]}, x.args...)...)(o, connection)
			},
			outside: func(o *setup) outsideLoad {
				return asking(workload{}, append([]string{"EVALSHA", o.shas[x.name]}, x.args...)...).outside(o)
			},
		})
	}
	return append(list, asking(workload{
		name: "fcall", does: "FCALL of a function with one command (function.lua)", keys: 1000,
		prepare: func(c *wire, o *setup) error {
			text, err := scriptText(o, "function")
			if err == nil {
				_, err = c.text("FUNCTION", "LOAD", "REPLACE", text)
			}
			return err
		},
	}, "FCALL", "benchmark_incr", "1", "counter:##########"))
}

// fillQueues adds messages to delay queues, which are numbered from first on by step. From a time on, one message becomes due
// per unit of time.
func fillQueues(c *wire, first, step, messages int, from uint64) error {
	const chunk = 50
	args := []string{"ZADD", queueName}
	for range chunk {
		args = append(args, "#############", "message:#########")
	}
	p := command(args...)
	numbers := make([]uint64, 1+2*chunk)
	chunks := uint64(max(messages/chunk, 1))
	count := (queues - first + step - 1) / step
	return c.fill(count*int(chunks), func(b []byte, i uint64) []byte {
		queue := i/chunks*uint64(step) + uint64(first)
		numbers[0] = queue
		for j := range uint64(chunk) {
			message := i%chunks*chunk + j
			numbers[1+2*j], numbers[2+2*j] = from+message, queue*uint64(messages)+message
		}
		return p.append(b, numbers...)
	})
}
