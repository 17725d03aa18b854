package commands_test

// The cost of a command from its bytes to its reply's bytes, without a socket: parsing, dispatch, locks, the handler, the
// reply. Pipelines of 16.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

const pipeline = 16

// benchSize is a number of keys or batches: a tenth of n with -short, for runs that count instructions, which are slow.
func benchSize(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func BenchmarkServe(b *testing.B) {
	keys := benchSize(100_000)
	value := strings.Repeat("v", 32)
	key := func(r *rand.Rand) string { return fmt.Sprintf("key:%012d", r.IntN(keys)) }
	field := func(r *rand.Rand) string { return fmt.Sprintf("field:%02d", r.IntN(10)) }
	member := func(r *rand.Rand) string { return fmt.Sprintf("member:%09d", r.IntN(keys)) }
	strs := func(r *rand.Rand, i int) []any { return []any{"SET", fmt.Sprintf("key:%012d", i), value} }
	hashes := func(r *rand.Rand, i int) []any {
		return []any{"HSET", fmt.Sprintf("key:%012d", i%(keys/10)), fmt.Sprintf("field:%02d", i/(keys/10)), value}
	}
	members := func(r *rand.Rand, i int) []any {
		return []any{"ZADD", "zset", r.IntN(keys), fmt.Sprintf("member:%09d", i)}
	}
	limiter := func(r *rand.Rand) string { return fmt.Sprintf("limiter:%06d", r.IntN(1000)) }
	rules := func(algorithm string) func(r *rand.Rand, i int) []any {
		return func(r *rand.Rand, i int) []any {
			return []any{"RL.SET", fmt.Sprintf("limiter:%06d", i%1000), algorithm, 10, 1 + i%2*1_000_000}
		}
	}
	acquire := func(r *rand.Rand) []any { return []any{"RL.ACQUIRE", limiter(r)} }
	for _, bench := range []struct {
		name string
		fill func(r *rand.Rand, i int) []any
		next func(r *rand.Rand) []any
	}{
		{"PING", nil, func(r *rand.Rand) []any { return []any{"PING"} }},
		{"GET", strs, func(r *rand.Rand) []any { return []any{"GET", key(r)} }},
		{"SET", strs, func(r *rand.Rand) []any { return []any{"SET", key(r), value} }},
		{"INCR", func(r *rand.Rand, i int) []any { return []any{"SET", fmt.Sprintf("key:%012d", i), 1} },
			func(r *rand.Rand) []any { return []any{"INCR", key(r)} }},
		{"HSET", hashes, func(r *rand.Rand) []any {
			return []any{"HSET", fmt.Sprintf("key:%012d", r.IntN(keys/10)), field(r), value}
		}},
		{"HGET", hashes, func(r *rand.Rand) []any { return []any{"HGET", fmt.Sprintf("key:%012d", r.IntN(keys/10)), field(r)} }},
		{"ZADD", members, func(r *rand.Rand) []any { return []any{"ZADD", "zset", r.IntN(keys), member(r)} }},
		{"ZRANGEBYSCORE", members, func(r *rand.Rand) []any {
			from := r.IntN(keys)
			return []any{"ZRANGEBYSCORE", "zset", from, from + 9, "LIMIT", 0, 10}
		}},
		{"ZRANK", members, func(r *rand.Rand) []any { return []any{"ZRANK", "zset", member(r)} }},
		{"RL.ACQUIRE/GCRA", rules("GCRA"), acquire},
		{"RL.ACQUIRE/LOG", rules("LOG"), acquire},
		{"RL.ACQUIRE/WINDOW", rules("WINDOW"), acquire},
		{"RL.ACQUIRE/FIXED", rules("FIXED"), acquire},
		{"EVAL/declared", nil, func(r *rand.Rand) []any { return []any{"EVAL", "return redis.call('incr', KEYS[1])", 1, "k"} }},
		{"EVAL/undeclared", nil, func(r *rand.Rand) []any { return []any{"EVAL", "return redis.call('incr', 'k')", 0} }},
		{"EVAL/loop", nil, func(r *rand.Rand) []any {
			return []any{"EVAL", "local i = 0 while i < 3 do redis.call('incr', KEYS[1]) i = i + 1 end return i", 1, "k"}
		}},
		{"FCALL", func(r *rand.Rand, i int) []any {
			return []any{"FUNCTION", "LOAD", "REPLACE", "#!lua name=l\nredis.register_function('f', function(k) return redis.call('incr', k[1]) end)"}
		}, func(r *rand.Rand) []any { return []any{"FCALL", "f", 1, "k"} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := serve(b)
			r := rand.New(rand.NewPCG(1, 2))
			if bench.fill != nil {
				for i := range keys {
					if bench.name == "FCALL" && i > 0 {
						break
					}
					s.do(b, bench.fill(r, i)...)
				}
			}
			batches := make([][]byte, benchSize(2000))
			for i := range batches {
				for range pipeline {
					batches[i] = request(batches[i], bench.next(r)...)
				}
			}
			s.feed(b, batches[0])
			b.ReportAllocs()
			b.ResetTimer()
			began := livetest.CPU()
			for i := 0; i < b.N; i += pipeline { // ns/op is that of one command
				s.conn.Feed(batches[i/pipeline%len(batches)])
			}
			// On a machine that is busy with other things this number counts.
			b.ReportMetric(float64(livetest.CPU()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}
