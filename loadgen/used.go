package main

// Workloads as in real use, each in two ways: with limitkv's commands, and with equivalent scripts and plain commands for any
// server. Limiters have a rule in every request and short periods, so that they are made, become full and disappear all the
// time. Others are hot, cold, or refuse nearly all requests. Queues of any depth live their whole life. Keys live for 100 ms.

import (
	"bytes"
	"math"
	"slices"
)

const (
	usedLimiter = "g:############"
	usedCounter = "c:############"
	usedQueue   = "q:##"
	usedEntry   = "e:############"
	// usedQueues is the number of queues. If there are at most as many connections, each has its own queue. It then knows the
	// next entry without looking at replies.
	usedQueues = 50
	usedLease  = "30000"
)

// picker picks the limiter of a request.
type picker func(o *setup, connection uint64) func(seq uint64) uint64

func uniform(o *setup, connection uint64) func(uint64) uint64 {
	rnd, n := o.random(connection), uint64(o.keys)
	return func(uint64) uint64 { return rnd.below(n) }
}

// zipf picks the k-th of n with a probability proportional to 1/k.
func zipf(o *setup, connection uint64) func(uint64) uint64 {
	rnd, log := o.random(connection), math.Log(float64(o.keys))
	return func(uint64) uint64 {
		return min(uint64(math.Exp(float64(rnd.next()>>11)/(1<<53)*log)), uint64(o.keys)) - 1
	}
}

// passing picks one of as many limiters as there are keys. The set moves on: each limiter gets four requests.
func passing(o *setup, connection uint64) func(uint64) uint64 {
	rnd, n := o.random(connection), uint64(o.keys)
	return func(seq uint64) uint64 { return seq/4 + rnd.below(n) }
}

// cold picks a limiter that no request has used before.
func cold(*setup, uint64) func(uint64) uint64 {
	return func(seq uint64) uint64 { return seq }
}

func hot(*setup, uint64) func(uint64) uint64 { return func(uint64) uint64 { return 0 } }

// usedLimiterKind is a way in which limiters are used.
type usedLimiterKind struct {
	name, does, count, millis string
	keys                      int
	pick                      picker
	outside                   bool // valkey-benchmark can pick the same way
}

// outsideLoad returns a command for valkey-benchmark. With consecutive numbers the keys are unused ones.
func (l *usedLimiterKind) outsideLoad(command ...string) outsideLoad {
	load := outsideOne(command...)
	if l.name == "cold" {
		load.countsUp, load.keys = true, 1_000_000_000
	}
	return load
}

// usedLimiters are the ways in which limiters are used: the limit and its period in milliseconds, for GCRA and for the script.
var usedLimiters = []usedLimiterKind{
	{"inline", "10 a second, over 100,000 keys", "10", "1000", 100_000, uniform, true},
	{"zipf", "10 a second, over 100,000 keys of which some are asked far more often", "10", "1000", 100_000, zipf, false},
	{"passing", "10 a second, keys that come and go: each is asked four times", "10", "1000", 1000, passing, false},
	{"cold", "10 a second, a new key each time", "10", "1000", 1000, cold, true},
	{"hot", "one key for all", "100000000", "1000", 1, hot, true},
	{"refused", "nearly all are refused", "1", "10000", 1000, uniform, true},
}

func usedWorkloads() (list []*workload) {
	for _, l := range usedLimiters {
		native := &workload{
			name: "rl." + l.name, does: "RL.ACQUIRE with its rule: " + l.does, own: true, keys: l.keys, refused: startsWith1,
			maker: func(o *setup, connection uint64) maker {
				p, pick := command("RL.ACQUIRE", usedLimiter, "1", "GCRA", l.count, l.millis), l.pick(o, connection)
				return func(b []byte, seq uint64) []byte { return p.append(b, pick(seq)) }
			},
		}
		limit := int64(1)
		if l.count != "1" {
			limit = limiterRate
		}
		script := &workload{
			name: "script." + l.name, does: "a limiter by a script (limiter.lua): " + l.does, keys: l.keys, prepare: loading("limiter"),
			refused: func(r *reply) bool { return r.kind == ':' && r.n > limit },
			maker: func(o *setup, connection uint64) maker {
				p, pick := command("EVALSHA", o.shas["limiter"], "1", usedCounter, l.millis), l.pick(o, connection)
				return func(b []byte, seq uint64) []byte { return p.append(b, pick(seq)) }
			},
		}
		if l.name == "hot" {
			native.refused, script.refused = nil, nil
		}
		if l.outside {
			native.outside = func(*setup) outsideLoad {
				return l.outsideLoad("RL.ACQUIRE", "g:__rand_int__", "1", "GCRA", l.count, l.millis)
			}
			script.outside = func(o *setup) outsideLoad {
				return l.outsideLoad("EVALSHA", o.shas["limiter"], "1", "c:__rand_int__", l.millis)
			}
		}
		list = append(list, native, script)
	}
	queue, scripts := usedQueueLife()
	list = append(list, asking(workload{name: "set.px", does: "SET of a key at random that lives for 100 ms", keys: 1_000_000},
		"SET", "key:############", valueArg, "PX", "100"), queue, scripts, sidekiqWorkload())
	return append(list,
		mixed("mixed", "all of it: limiters, locks, queues, GET and SET", true, list,
			portion{"rl.inline", 8}, portion{"lk.mutex", 3}, portion{"dq.life", 3}, portion{"get", 1}, portion{"set", 1}),
		mixed("script.mixed", "the same by scripts", false, list,
			portion{"script.inline", 8}, portion{"lock.plain", 3}, portion{"script.life", 3}, portion{"get", 1}, portion{"set", 1}))
}

// usedQueueLife is the life of an entry in a queue with others: added, taken with a lease, and acknowledged. A new entry is
// due after all others, so a connection with its own queue knows which one is next.
func usedQueueLife() (native, scripts *workload) {
	life := func(w *workload, fill func(o *setup) *pattern, patterns func(o *setup) (add, pop, ack *pattern)) *workload {
		w.keys, w.drains = 10*usedQueues, true // a connection begins anew with each run
		load := w.prepare
		w.prepare = func(c *wire, o *setup) error {
			if load != nil {
				if err := load(c, o); err != nil {
					return err
				}
			}
			p := fill(o)
			return c.fill(o.keys/usedQueues*usedQueues, func(b []byte, i uint64) []byte {
				queue, entry := i%usedQueues, i/usedQueues
				return p.append(b, numbersFor(p, queue, entry)...)
			})
		}
		w.judge = func() func(r *reply) string {
			step := 0
			return func(r *reply) string {
				if step = (step + 1) % 3; step == 0 && !isOne(r) {
					return "what was taken is not there: are there more connections than queues?"
				}
				return ""
			}
		}
		w.maker = func(o *setup, connection uint64) maker {
			add, pop, ack := patterns(o)
			queue, last, first, step := connection%usedQueues, uint64(o.keys/usedQueues), uint64(0), 0
			return func(b []byte, _ uint64) []byte {
				step++
				switch step {
				case 1:
					last++
					return add.append(b, numbersFor(add, queue, last-1)...)
				case 2:
					return pop.append(b, numbersFor(pop, queue, first)...)
				}
				step = 0
				first++
				return ack.append(b, numbersFor(ack, queue, first-1)...)
			}
		}
		return w
	}
	native = life(&workload{name: "dq.life", does: "DQ.ADD, DQ.POP with a lease and DQ.ACK, in queues of 10 entries", own: true},
		func(o *setup) *pattern { return command("DQ.ADD", usedQueue, "ID", usedEntry, o.value) },
		func(o *setup) (add, pop, ack *pattern) {
			return command("DQ.ADD", usedQueue, "ID", usedEntry, o.value), command("DQ.POP", usedQueue, "LEASE", usedLease),
				literal(command("DQ.ACK", usedQueue, usedEntry+"-1"), "-1", "#1")
		})
	const line, taken, data = "{" + usedQueue + "}:due", "{" + usedQueue + "}:taken", "{" + usedQueue + "}:data"
	adds := func(o *setup) *pattern {
		return command("EVALSHA", o.shas["queue_add"], "2", line, data, usedDue, usedEntry, o.value)
	}
	scripts = life(&workload{
		name: "script.life", does: "the same by scripts (queue_add.lua, queue_pop.lua, queue_ack.lua)", prepare: loading("queue_add", "queue_pop", "queue_ack"),
	}, adds, func(o *setup) (add, pop, ack *pattern) {
		return adds(o), command("EVALSHA", o.shas["queue_pop"], "3", line, taken, data, usedDue, usedLease),
			command("EVALSHA", o.shas["queue_ack"], "2", taken, data, usedEntry)
	})
	return native, scripts
}

// literal replaces a text in a pattern by another one of the same length, which would otherwise be a hole.
func literal(p *pattern, old, text string) *pattern {
	p.text = bytes.Replace(p.text, []byte(old), []byte(text), 1)
	return p
}

// usedDue is the due time of an entry, in ms.
const usedDue = "1#############"

// numbersFor fills the holes of a queue's name with the queue, and all others with the entry.
func numbersFor(p *pattern, queue, entry uint64) []uint64 {
	numbers := make([]uint64, len(p.holes))
	for i, h := range p.holes {
		if numbers[i] = entry; h.width == 2 {
			numbers[i] = queue
		}
	}
	return numbers
}

// sidekiqWorkload is a job's way through Sidekiq, as its client and workers send it: plain commands, and the script that moves
// due jobs.
func sidekiqWorkload() *workload {
	return &workload{
		name: "sidekiq", does: "a job of the shape of Sidekiq's: pushed, moved when due, fetched, counted (zpopbyscore.lua)", keys: usedQueues,
		prepare: loading("zpopbyscore"),
		outside: func(o *setup) outsideLoad {
			const queue, schedule = "queue:__rand_1st__", "schedule:__rand_1st__"
			return outsideLoad{commands: [][]string{
				{"SADD", "queues", "__rand_1st__"}, {"LPUSH", queue, "job:" + o.value}, {"ZADD", schedule, "1", "job:" + o.value},
				{"EVALSHA", o.shas["zpopbyscore"], "1", schedule, "1"}, {"BRPOP", queue, "2"}, {"INCR", "stat:processed"},
			}}
		},
		maker: func(o *setup, connection uint64) maker {
			const queue, job = "queue:" + usedQueue, "job:############"
			set, push, fetch := command("SADD", "queues", usedQueue), command("LPUSH", queue, job+o.value), command("BRPOP", queue, "2")
			later := command("ZADD", "schedule:"+usedQueue, "############", job+o.value)
			due := command("EVALSHA", o.shas["zpopbyscore"], "1", "schedule:"+usedQueue, "############")
			done := command("INCR", "stat:processed")
			queueOf, n, step := connection%usedQueues, uint64(0), 0
			return func(b []byte, _ uint64) []byte {
				p := []*pattern{set, push, later, due, fetch, done}[step]
				if step++; step == 6 {
					step = 0
					n++
				}
				return p.append(b, numbersFor(p, queueOf, n)...)
			}
		},
	}
}

// portion is the number of requests of one kind in a mixture.
type portion struct {
	workload string
	requests int
}

// mixed is a mixture of several workloads: those in used, those of locks, and basic ones.
func mixed(name, does string, own bool, used []*workload, portions ...portion) *workload {
	known := slices.Concat(used, lockWorkloads(), basicWorkloads())
	var parts []*workload
	var which []int // by a random number
	for i, x := range portions {
		parts = append(parts, named(known, x.workload))
		which = append(which, slices.Repeat([]int{i}, x.requests)...)
	}
	return &workload{
		name: name, does: does, own: own, keys: 100_000, drains: true,
		prepare: func(c *wire, o *setup) error {
			for _, part := range parts {
				if part.prepare == nil {
					continue
				}
				if err := part.prepare(c, o); err != nil {
					return err
				}
			}
			return nil
		},
		maker: func(o *setup, connection uint64) maker {
			rnd := o.random(connection)
			var makers []maker
			for _, part := range parts {
				makers = append(makers, part.maker(o, connection))
			}
			return func(b []byte, seq uint64) []byte {
				return makers[which[rnd.below(uint64(len(which)))]](b, seq)
			}
		},
	}
}

// usedClaims returns the claims: many is the least ratio in pipelines of 16, one is that if each request waits for its reply.
func usedClaims() (list []claim) {
	for _, x := range []struct {
		name, against string
		keys          int
		many, one     float64
	}{
		{"rl.inline", "script.inline", 0, 5, 1.3}, {"rl.inline", "script.inline", 1_000_000, 5, 1.3},
		{"rl.zipf", "script.zipf", 0, 5, 1.3}, {"rl.zipf", "script.zipf", 1_000_000, 5, 1.3},
		{"rl.passing", "script.passing", 0, 5, 1.3}, {"rl.cold", "script.cold", 0, 5, 1.3},
		{"rl.hot", "script.hot", 0, 10, 1.5}, {"rl.refused", "script.refused", 0, 10, 1.5},
		{"dq.life", "script.life", 0, 5, 1.3}, {"dq.life", "script.life", 1_000_000, 5, 1.3},
		{"mixed", "script.mixed", 0, 3, 1},
		{"script.inline", "", 0, 2, 1.1}, {"script.passing", "", 0, 2, 1.1}, {"script.life", "", 0, 2, 1},
		{"set.px", "", 0, 1.3, 1}, {"sidekiq", "", 0, 1.3, 1},
	} {
		list = append(list, claim{workload: x.name, against: x.against, keys: x.keys, pipeline: 16, atLeast: x.many},
			claim{workload: x.name, against: x.against, keys: x.keys, pipeline: 1, atLeast: x.one})
	}
	return list
}
