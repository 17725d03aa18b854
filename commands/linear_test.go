package commands_test

// Shards, lock sets, reservations: whatever runs at the same time, clients see one order of commands. Histories of concurrent
// clients – commands of one key and of several, transactions, scripts that are proven, unproven and long, FLUSHALL – are
// checked for linearizability.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/limitkv/limitkv/commands/livetest"
)

// linearKeys are in different shards, as far as their hashes have it.
var linearKeys = [...]string{"a", "b", "c"}

// linearState is what the keys hold; missing keys are nil in Redis, noValue
// here.
type linearState [len(linearKeys)]int

const noValue = -1 << 40

// linearOp is one kind of command: how it is sent, and what it does to the
// state and replies.
type linearOp struct {
	name  string
	send  func(c *livetest.Client, k [2]int, n int) string
	apply func(s *linearState, k [2]int, n int) string
}

func (s *linearState) text(k int) string {
	if s[k] == noValue {
		return "nil"
	}
	return fmt.Sprint(s[k])
}

func (s *linearState) add(k, n int) int {
	if s[k] == noValue {
		s[k] = 0
	}
	s[k] += n
	return s[k]
}

const (
	// The script writes some time after it reads, so that a command in between is detected.
	transferScript = "local x, y = redis.call('get', KEYS[1]), redis.call('get', KEYS[2]) " +
		"for i = 1, 2000 do local _ = i * i end " +
		"if KEYS[1] == KEYS[2] then return {redis.call('incrby', KEYS[1], ARGV[1]), redis.call('decrby', KEYS[2], ARGV[1])} end " +
		"x, y = (x or 0) + ARGV[1], (y or 0) - ARGV[1] " +
		"redis.call('set', KEYS[1], x) redis.call('set', KEYS[2], y) return {x, y}"
	// The key is not among KEYS, so every shard is locked.
	unprovenScript = "local x = redis.call('get', 'b') or 0 for i = 1, 2000 do local _ = i * i end " +
		"x = x + ARGV[1] redis.call('set', 'b', x) return x"
	// A loop without a known end runs off the event loop.
	longScript = "local n = 0 while n < tonumber(ARGV[1]) do n = redis.call('incr', KEYS[1]) end return redis.call('get', KEYS[2])"
)

var linearOps = []linearOp{
	{"get",
		func(c *livetest.Client, k [2]int, _ int) string { return c.Do("GET", linearKeys[k[0]]) },
		func(s *linearState, k [2]int, _ int) string { return s.text(k[0]) }},
	{"set",
		func(c *livetest.Client, k [2]int, n int) string { return c.Do("SET", linearKeys[k[0]], n) },
		func(s *linearState, k [2]int, n int) string { s[k[0]] = n; return "OK" }},
	{"incrby",
		func(c *livetest.Client, k [2]int, n int) string { return c.Do("INCRBY", linearKeys[k[0]], n) },
		func(s *linearState, k [2]int, n int) string { return fmt.Sprint(s.add(k[0], n)) }},
	{"mget",
		func(c *livetest.Client, _ [2]int, _ int) string { return c.Do("MGET", "a", "b", "c") },
		func(s *linearState, _ [2]int, _ int) string {
			return fmt.Sprintf("[%s %s %s]", s.text(0), s.text(1), s.text(2))
		}},
	{"mset",
		func(c *livetest.Client, _ [2]int, n int) string { return c.Do("MSET", "c", n, "a", n+1, "b", n+2) },
		func(s *linearState, _ [2]int, n int) string { s[2], s[0], s[1] = n, n+1, n+2; return "OK" }},
	{"transfer",
		func(c *livetest.Client, k [2]int, n int) string {
			return c.Do("EVAL", transferScript, 2, linearKeys[k[0]], linearKeys[k[1]], n)
		},
		func(s *linearState, k [2]int, n int) string {
			x := s.add(k[0], n)
			return fmt.Sprintf("[%d %d]", x, s.add(k[1], -n))
		}},
	{"unproven",
		func(c *livetest.Client, _ [2]int, n int) string { return c.Do("EVAL", unprovenScript, 0, n) },
		func(s *linearState, _ [2]int, n int) string { return fmt.Sprint(s.add(1, n)) }},
	{"long",
		func(c *livetest.Client, k [2]int, n int) string {
			return c.Do("EVAL", longScript, 2, linearKeys[k[0]], linearKeys[k[1]], n)
		},
		func(s *linearState, k [2]int, n int) string {
			if n > 0 {
				for s.add(k[0], 1) < n {
				}
			}
			return s.text(k[1])
		}},
	{"exec",
		func(c *livetest.Client, k [2]int, n int) string {
			c.Do("MULTI")
			c.Do("INCRBY", linearKeys[k[0]], n)
			c.Do("GET", linearKeys[k[1]])
			return c.Do("EXEC")
		},
		func(s *linearState, k [2]int, n int) string {
			x := s.add(k[0], n)
			return fmt.Sprintf("[%d %s]", x, s.text(k[1]))
		}},
	{"rename",
		func(c *livetest.Client, k [2]int, _ int) string {
			return c.Do("RENAME", linearKeys[k[0]], linearKeys[k[1]])
		},
		func(s *linearState, k [2]int, _ int) string {
			if s[k[0]] == noValue {
				return "-ERR no such key"
			}
			if k[0] != k[1] {
				s[k[1]], s[k[0]] = s[k[0]], noValue
			}
			return "OK"
		}},
	{"flushall",
		func(c *livetest.Client, _ [2]int, _ int) string { return c.Do("FLUSHALL") },
		func(s *linearState, _ [2]int, _ int) string {
			*s = linearState{noValue, noValue, noValue}
			return "OK"
		}},
}

type linearInput struct {
	op int
	k  [2]int
	n  int
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{noValue, noValue, noValue} },
	Step: func(state, input, output any) (bool, any) {
		s, in := state.(linearState), input.(linearInput)
		want := linearOps[in.op].apply(&s, in.k, in.n)
		return want == output.(string), s
	},
	DescribeOperation: func(input, output any) string {
		in := input.(linearInput)
		return fmt.Sprintf("%s %v %d = %v", linearOps[in.op].name, in.k, in.n, output)
	},
}

func TestLinearizable(t *testing.T) {
	const rounds, clients, each = 40, 6, 9
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	server := livetest.Start(t)
	var conns [clients]*livetest.Client
	for i := range conns {
		conns[i] = server.Client()
	}
	ran := map[string]int{}
	for round := range rounds {
		conns[0].Want("OK", "FLUSHALL")
		var mu sync.Mutex
		var history []porcupine.Operation
		var wg sync.WaitGroup
		start := time.Now()
		for id, c := range conns {
			wg.Add(1)
			go func() {
				defer wg.Done()
				rng := rand.New(rand.NewPCG(seed, uint64(round*clients+id)))
				for range each {
					in := linearInput{rng.IntN(len(linearOps)), [2]int{rng.IntN(3), rng.IntN(3)}, 1 + rng.IntN(20)}
					call := time.Since(start)
					out := linearOps[in.op].send(c, in.k, in.n)
					ret := time.Since(start)
					mu.Lock()
					history = append(history, porcupine.Operation{
						ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
					ran[linearOps[in.op].name]++
					mu.Unlock()
				}
			}()
		}
		wg.Wait()
		switch result, _ := porcupine.CheckOperationsVerbose(linearModel, history, 20*time.Second); result {
		case porcupine.Illegal:
			var b strings.Builder
			for _, op := range history {
				fmt.Fprintf(&b, "%d-%d client %d: %s\n", op.Call, op.Return, op.ClientId, linearModel.DescribeOperation(op.Input, op.Output))
			}
			t.Fatalf("round %d is not linearizable:\n%s", round, b.String())
		case porcupine.Unknown:
			t.Errorf("round %d was not decided in time", round)
		}
	}
	for _, op := range linearOps {
		if ran[op.name] == 0 {
			t.Errorf("%s never ran", op.name)
		}
	}
}
