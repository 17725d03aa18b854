package main

// Workloads: requests to a server, and the meaning of its replies. A workload is one row; all are in workloads().

import (
	"fmt"
	"slices"
	"strings"
)

// workload is a kind of load.
type workload struct {
	name string
	does string // for --help and the report
	// own workloads need limitkv's commands.
	own bool
	// keys is the default number of keys (--keys).
	keys int
	// drains: a run uses up what prepare has made, and takes at most requests(keys) requests. Each run is prepared again.
	drains   bool
	requests func(keys int) uint64
	// prepare fills an emptied server.
	prepare func(c *wire, o *setup) error
	// maker makes the requests of one connection: it returns a function that appends the next one. seq numbers the requests of
	// all connections and is used as the time.
	maker func(o *setup, connection uint64) maker
	// refused tells whether a reply means "no" (a limiter's refusal, an empty queue, a held lock). nil: no reply does.
	refused func(r *reply) bool
	// judge makes a function that checks each reply of a connection in order and returns what is wrong, "" if nothing is. nil:
	// only errors are wrong.
	judge func() func(r *reply) (wrong string)
	// outside is the load for valkey-benchmark, nil if it cannot send it.
	outside func(o *setup) outsideLoad
}

// maker appends the request with a number to b.
type maker func(b []byte, seq uint64) []byte

// setup is the parameters of a workload.
type setup struct {
	keys int
	// value is the value to store.
	value string
	// shas are the scripts' SHA-1s by name.
	shas map[string]string
	// scripts is a folder of scripts to load instead of the tool's own.
	scripts string
}

// random returns a connection's own generator. Its seed is mixed, since consecutive seeds would give the same numbers one step
// apart.
func (o *setup) random(connection uint64) *random {
	seed := random(connection)
	r := random(seed.next())
	return &r
}

func workloads() []*workload {
	return slices.Concat(basicWorkloads(), sortedSetWorkloads(), scriptWorkloads(), unprovenWorkloads(), nativeWorkloads(), lockWorkloads(), usedWorkloads())
}

// choose finds workloads by name; "all" and names of groups mean several. "all" does not include recordings, which are not on
// every machine.
func choose(names string) ([]*workload, error) {
	recorded, _, err := recordedWorkloads(recordingsDir())
	if err != nil {
		return nil, err
	}
	groups := map[string][]*workload{
		"all": workloads(), "basic": basicWorkloads(), "zset": sortedSetWorkloads(),
		"scripts": scriptWorkloads(), "unproven": unprovenWorkloads(), "native": nativeWorkloads(), "locks": lockWorkloads(), "used": usedWorkloads(), "recorded": recorded,
	}
	var chosen []*workload
	for name := range strings.SplitSeq(strings.ToLower(names), ",") {
		if g := groups[name]; g != nil {
			chosen = append(chosen, g...)
			continue
		}
		known := slices.Concat(groups["all"], recorded)
		i := slices.IndexFunc(known, func(w *workload) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no workload %q (limitkv-benchmark record makes those of libraries)", name)
		}
		chosen = append(chosen, known[i])
	}
	return chosen, nil
}

// Replies that mean "no".
func isNull(r *reply) bool      { return r.null }
func isZero(r *reply) bool      { return r.kind == ':' && r.n == 0 }
func isOne(r *reply) bool       { return r.kind == ':' && r.n == 1 }
func isInteger(r *reply) bool   { return r.kind == ':' }
func startsWith1(r *reply) bool { return r.first == 1 }

func isEmpty(r *reply) bool { return r.null || r.kind == '*' && r.n == 0 }

// valueArg is a placeholder for the value to store.
const valueArg = "VALUE"

// filled replaces the placeholder by the value.
func (o *setup) filled(args []string) []string {
	args = slices.Clone(args)
	for i := range args {
		if args[i] == valueArg {
			args[i] = o.value
		}
	}
	return args
}

// filling returns a prepare function that sends a command for each number below keys, with the number in all holes. Several
// commands alternate.
func filling(commands ...[]string) func(c *wire, o *setup) error {
	return func(c *wire, o *setup) error {
		var patterns []*pattern
		for _, args := range commands {
			patterns = append(patterns, command(o.filled(args)...))
		}
		return c.fill(o.keys, func(b []byte, i uint64) []byte {
			p := patterns[i%uint64(len(patterns))]
			return p.append(b, slices.Repeat([]uint64{i}, len(p.holes))...)
		})
	}
}

// atRandom repeats a command, with a random number below keys in each hole.
func atRandom(args ...string) func(o *setup, connection uint64) maker {
	return func(o *setup, connection uint64) maker {
		p, rnd, n := command(o.filled(args)...), o.random(connection), uint64(o.keys)
		numbers := make([]uint64, len(p.holes))
		return func(b []byte, _ uint64) []byte {
			for i := range numbers {
				numbers[i] = rnd.below(n)
			}
			return p.append(b, numbers...)
		}
	}
}

// asking returns a workload that sends a command like atRandom, and the same load for valkey-benchmark.
func asking(w workload, args ...string) *workload {
	w.maker = atRandom(args...)
	w.outside = func(o *setup) outsideLoad {
		var theirs []string
		for _, arg := range o.filled(args) {
			theirs = append(theirs, outsideHole.ReplaceAllString(arg, "__rand_int__"))
		}
		return outsideOne(theirs...)
	}
	return &w
}

// basicWorkloads are those of strings and hashes.
func basicWorkloads() []*workload {
	const key = "key:############"
	fill := filling([]string{"SET", key, valueArg})
	return []*workload{
		asking(workload{name: "get", does: "GET of a key at random", keys: 100_000, prepare: fill, refused: isNull}, "GET", key),
		asking(workload{name: "set", does: "SET of a key at random", keys: 100_000, prepare: fill}, "SET", key, valueArg),
		asking(workload{name: "incr", does: "INCR of a counter at random", keys: 100_000, prepare: filling([]string{"SET", key, "1"})}, "INCR", key), {
			name: "hset", does: "HSET of a field of hashes of 10 fields", keys: 10_000,
			prepare: fillHashes,
			maker: func(o *setup, connection uint64) maker {
				p, rnd, n := command("HSET", key, "field:##", o.value), o.random(connection), uint64(o.keys)
				return func(b []byte, _ uint64) []byte { return p.append(b, rnd.below(n), rnd.below(hashFields)) }
			},
			outside: func(o *setup) outsideLoad { return outsideOne("HSET", outsideKey, "field:05", o.value) },
		}, {
			name: "hget", does: "HGET of a field of hashes of 10 fields", keys: 10_000,
			prepare: fillHashes,
			maker: func(o *setup, connection uint64) maker {
				p, rnd, n := command("HGET", key, "field:##"), o.random(connection), uint64(o.keys)
				return func(b []byte, _ uint64) []byte { return p.append(b, rnd.below(n), rnd.below(hashFields)) }
			},
			refused: isNull,
			outside: outsideCommand("HGET", outsideKey, "field:05"),
		}}
}

// hashFields is the number of fields of a hash.
const hashFields = 10

func fillHashes(c *wire, o *setup) error {
	args := []string{"HSET", "key:############"}
	for range hashFields {
		args = append(args, "field:##", o.value)
	}
	p := command(args...)
	return c.fill(o.keys, func(b []byte, i uint64) []byte {
		return p.append(b, i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	})
}

// sortedSetWorkloads are those of one large sorted set; keys is the number of its members.
func sortedSetWorkloads() []*workload {
	const members = 1_000_000
	fill := func(c *wire, o *setup) error { return fillSortedSet(c, "zset", uint64(o.keys)) }
	return []*workload{
		asking(workload{name: "zadd", does: "ZADD of a new score for a member at random", keys: members, prepare: fill}, "ZADD", "zset", "#########", sortedSetMember),
		asking(workload{name: "zrank", does: "ZRANK of a member at random", keys: members, prepare: fill, refused: isNull}, "ZRANK", "zset", sortedSetMember), {
			name: "zrangebyscore", does: "ZRANGEBYSCORE of about 10 members", keys: members, prepare: fill,
			maker: func(o *setup, connection uint64) maker {
				p, rnd, n := command("ZRANGEBYSCORE", "zset", "#########", "#########", "LIMIT", "0", "10"), o.random(connection), uint64(o.keys)
				return func(b []byte, _ uint64) []byte {
					from := rnd.below(n)
					return p.append(b, from, from+9)
				}
			},
			refused: isEmpty,
			outside: outsideCommand("ZRANGEBYSCORE", "zset", "__rand_int__", "+inf", "LIMIT", "0", "10"),
		}, {
			name: "zpopmin", does: "ZPOPMIN until nine tenths of the members are gone", keys: members, prepare: fill,
			drains:   true,
			requests: func(keys int) uint64 { return uint64(keys) * 9 / 10 },
			maker: func(o *setup, _ uint64) maker {
				p := command("ZPOPMIN", "zset")
				return func(b []byte, _ uint64) []byte { return p.append(b) }
			},
			refused: isEmpty,
			outside: func(o *setup) outsideLoad {
				return outsideLoad{commands: [][]string{{"ZPOPMIN", "zset"}}, requests: o.keys * 9 / 10}
			},
		}}
}

// sortedSetMember is a member of the large sorted set.
const sortedSetMember = "member:############"

// fillSortedSet adds members with random integer scores below their number.
func fillSortedSet(c *wire, key string, members uint64) error {
	const chunk = 50
	args := []string{"ZADD", key}
	for range chunk {
		args = append(args, "#########", sortedSetMember)
	}
	p, one := command(args...), command("ZADD", key, "#########", sortedSetMember)
	rnd := random(1)
	numbers := make([]uint64, 2*chunk)
	return c.fill(int((members+chunk-1)/chunk), func(b []byte, i uint64) []byte {
		if left := members - i*chunk; left < chunk {
			for j := range left {
				b = one.append(b, rnd.below(members), i*chunk+j)
			}
			return b
		}
		for j := range uint64(chunk) {
			numbers[2*j], numbers[2*j+1] = rnd.below(members), i*chunk+j
		}
		return p.append(b, numbers...)
	})
}
