package commands_test

// The cost of the journal for a write command, without a reader, or with a reader that discards everything. It is measured
// from the bytes of requests to those of replies, without a socket: the system's time for sockets would make the share look
// smaller.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine/journal"
)

// discard is a reader of the journal that discards everything.
type discard struct{ bytes int }

func (d *discard) Append(_ journal.LSN, _ int64, framed []byte) { d.bytes += len(framed) }

// writes are write commands, by name: the nth of a sequence of them.
var writes = []struct {
	name string
	next func(r *rand.Rand, n int) []any
}{
	{"SET", func(r *rand.Rand, n int) []any { return []any{"SET", keyOf(r), strings.Repeat("v", 32)} }},
	{"INCR", func(r *rand.Rand, n int) []any { return []any{"INCR", "n:" + keyOf(r)} }},
	{"HSET", func(r *rand.Rand, n int) []any {
		return []any{"HSET", "h:" + keyOf(r)[8:], fmt.Sprint("field:", n%10), strings.Repeat("v", 32)}
	}},
	{"ZADD", func(r *rand.Rand, n int) []any {
		return []any{"ZADD", "zset", r.IntN(1e6), fmt.Sprintf("key:%08d", n%10_000)}
	}},
	{"LPUSH", func(r *rand.Rand, n int) []any {
		if n%2 == 1 {
			return []any{"RPOP", "list"}
		}
		return []any{"LPUSH", "list", strings.Repeat("v", 32)}
	}},
	{"EVAL", func(r *rand.Rand, n int) []any {
		return []any{"EVAL", "return redis.call('incr', KEYS[1])", 1, "n:" + keyOf(r)}
	}},
	{"RL.ACQUIRE", func(r *rand.Rand, n int) []any { return []any{"RL.ACQUIRE", "rl:" + keyOf(r), "GCRA", 1000000, 1000} }},
	{"DQ", func(r *rand.Rand, n int) []any {
		switch n % 3 {
		case 0:
			return []any{"DQ.ADD", "queue", "DELAY", 0, "ID", fmt.Sprint("id:", n), strings.Repeat("v", 32)}
		case 1:
			return []any{"DQ.POP", "queue", "LEASE", 60000}
		}
		return []any{"DQ.REM", "queue", fmt.Sprint("id:", n-2)}
	}},
}

func keyOf(r *rand.Rand) string { return fmt.Sprintf("key:%08d", r.IntN(10_000)) }

func BenchmarkJournal(b *testing.B) {
	for _, w := range writes {
		for _, depth := range []int{pipeline, 1} {
			for _, read := range []bool{false, true} {
				name := fmt.Sprintf("%s/P%d/unread", w.name, depth)
				if read {
					name = fmt.Sprintf("%s/P%d/read", w.name, depth)
				}
				b.Run(name, func(b *testing.B) {
					s := serve(b)
					r := rand.New(rand.NewPCG(1, 2))
					batches := make([][]byte, benchSize(3000))
					for i := range batches {
						for n := range depth {
							batches[i] = request(batches[i], w.next(r, i*depth+n)...)
						}
					}
					for _, batch := range batches {
						s.feed(b, batch)
					}
					sink := &discard{}
					if read {
						s.Keyspace.Journal.Attach(sink)
					}
					b.ReportAllocs()
					b.ResetTimer()
					began := livetest.CPU()
					for i := 0; i < b.N; i += depth { // ns/op is that of one command
						s.conn.Feed(batches[i/depth%len(batches)])
					}
					b.ReportMetric(float64(livetest.CPU()-began)/float64(b.N), "cpu-ns/op")
					if read != (sink.bytes > 0) {
						b.Errorf("%d bytes were read", sink.bytes)
					}
				})
			}
		}
	}
}
