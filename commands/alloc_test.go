package commands_test

// The hot path makes no garbage: from the bytes of a request to the bytes of its reply, GET and similar commands allocate
// nothing.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// served is a server with a connection of its first event loop.
type served struct {
	*server.Server
	conn *resp.Memory
}

func serve(tb testing.TB) *served {
	s, err := commands.New(server.Options{Loops: 1, Settings: []params.Setting{{Name: "save"}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	c := resp.NewMemory(s, s.Keyspace.Clock.Now)
	c.Loop = 0
	return &served{s, c}
}

// request is the bytes of a command.
func request(b []byte, args ...any) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		text := fmt.Sprint(a)
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b
}

// do runs commands and returns the replies.
func (s *served) do(tb testing.TB, args ...any) string {
	return s.feed(tb, request(nil, args...))
}

func (s *served) feed(tb testing.TB, b []byte) string {
	reply := s.conn.Feed(b)
	if bytes.HasPrefix(reply, []byte("-")) || bytes.Contains(reply, []byte("\n-")) {
		tb.Fatalf("%q: %q", b[:min(len(b), 200)], reply)
	}
	return string(reply)
}

func TestNoAllocations(t *testing.T) {
	s := serve(t)
	s.do(t, "SET", "key:1", "some text of a few words")
	s.do(t, "SET", "{key}:n", 1)
	s.do(t, "HSET", "hash", "field", "value")
	s.do(t, "ZADD", "zset", 1, "member")
	for _, c := range [][]any{
		{"PING"},
		{"GET", "key:1"},
		{"get", "{key}:n"},
		{"GET", "missing"},
		{"SET", "key:1", "some text of equal length"[:24]},
		{"INCR", "{key}:n"},
		{"EXISTS", "key:1", "missing"},
		{"HGET", "hash", "field"},
		{"ZSCORE", "zset", "member"},
		{"ZADD", "zset", 2, "member"},
		{"RL.ACQUIRE", "limiter", "GCRA", 1000000, 1000},
		{"EVAL", "return redis.call('incr', KEYS[1])", 1, "{key}:n"},
		{"EVAL", "return redis.call('get', KEYS[1])", 1, "key:1"},
	} {
		one := request(nil, c...)
		var pipelined []byte
		for range 50 {
			pipelined = append(pipelined, one...)
		}
		for _, b := range [][]byte{one, pipelined} {
			s.feed(t, b) // buffers grow
			if n := testing.AllocsPerRun(200, func() { s.conn.Feed(b) }); n != 0 {
				t.Errorf("%v, %d bytes: %v allocations", c, len(b), n)
			}
		}
	}
}

// A reader of the journal makes a write command cost memory moves, but no allocation.
func TestReaderAllocatesNothing(t *testing.T) {
	for _, w := range writes {
		t.Run(w.name, func(t *testing.T) {
			s := serve(t)
			r := rand.New(rand.NewPCG(1, 2))
			var batches [2][]byte // alternately, so that they change something
			for i := range batches {
				for n := range 48 {
					batches[i] = request(batches[i], w.next(r, n)...)
				}
			}
			turn := 0
			allocated := func() float64 {
				for range 4 {
					s.feed(t, batches[turn%2]) // buffers grow
					turn++
				}
				return testing.AllocsPerRun(100, func() { s.conn.Feed(batches[turn%2]); turn++ })
			}
			unread := allocated()
			sink := &discard{}
			s.Keyspace.Journal.Attach(sink)
			if read := allocated(); read > unread || sink.bytes == 0 {
				t.Errorf("%v allocations where nobody reads, %v where %d bytes are read", unread, read, sink.bytes)
			}
		})
	}
}
