// Linearizability over kill -9: clients share keys, the server is killed and comes back, and there is one order of all
// commands that explains every reply. A command whose reply did not come may have happened or not.
package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/limitkv/limitkv/conformance/peer"
)

// ask is a command on a key of which every client sends some.
type ask struct {
	key  int
	kind string
	n    int
}

// kindsOfAsk are what clients send.
var kindsOfAsk = []string{"GET", "GET", "SET", "INCRBY", "DEL", "EVAL", "EXEC", "GETSET"}

// send sends a command, and returns its reply, "" if none came.
func (a ask) send(c *peer.Conn) string {
	key, n := "shared:"+strconv.Itoa(a.key), strconv.Itoa(a.n)
	var v peer.Value
	var err error
	switch a.kind {
	case "GET", "DEL":
		v, err = c.Do(a.kind, key)
	case "EVAL": // two effects of which the second alone must never be seen
		v, err = c.Do("EVAL", "redis.call('SET', KEYS[1], -1) return redis.call('INCRBY', KEYS[1], ARGV[1])", "1", key, n)
	case "EXEC":
		var b []byte
		b = peer.AppendCommand(b, "MULTI")
		b = peer.AppendCommand(b, "SET", key, "-1")
		b = peer.AppendCommand(b, "INCRBY", key, n)
		b = peer.AppendCommand(b, "EXEC")
		err = c.SendRaw(b)
		for range 4 {
			if err == nil {
				v, err = c.Receive()
			}
		}
		if err == nil && len(v.Items) == 2 {
			v = v.Items[1]
		}
	default:
		v, err = c.Do(a.kind, key, n)
	}
	if err != nil {
		return ""
	}
	if v.Null {
		return "nil"
	}
	return v.Text
}

// none is the value of a key that is not there.
const none = -1 << 40

func shown(n int) string {
	if n == none {
		return "nil"
	}
	return strconv.Itoa(n)
}

// apply is what a command replies and leaves.
func (a ask) apply(n int) (reply string, after int) {
	switch a.kind {
	case "GET":
		return shown(n), n
	case "SET":
		return "OK", a.n
	case "GETSET":
		return shown(n), a.n
	case "DEL":
		if n == none {
			return "0", none
		}
		return "1", none
	case "EVAL", "EXEC":
		return strconv.Itoa(a.n - 1), a.n - 1
	}
	if n == none {
		n = 0
	}
	return strconv.Itoa(n + a.n), n + a.n
}

var sharedKeys = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(ask).key
			parts[key] = append(parts[key], op)
		}
		var all [][]porcupine.Operation
		for _, p := range parts {
			all = append(all, p)
		}
		return all
	},
	Init: func() any { return none },
	Step: func(state, input, output any) (bool, any) {
		reply, after := input.(ask).apply(state.(int))
		return output == "" || output == reply, after
	},
}

// TestKillLinear kills the server while clients work on the same keys.
func TestKillLinear(t *testing.T) {
	const clients, keys = 6, 5
	r, dir := seed(t), t.TempDir()
	args := []string{"--appendonly", "yes", "--appendfsync", "always"}
	values := [keys]int{none, none, none, none, none}
	asked, unknown, times := 0, 0, 1+*rounds/3
	for round := range times {
		s := start(t, dir, args...)
		began := time.Now()
		now := func() int64 { return time.Since(began).Nanoseconds() }
		var mu sync.Mutex
		var history []porcupine.Operation
		note := func(client int, a ask, call int64, reply string) {
			mu.Lock()
			defer mu.Unlock()
			history = append(history, porcupine.Operation{ClientId: client, Input: a, Call: call, Output: reply, Return: now()})
		}
		for key, n := range values { // what there was when the round began
			if n == none {
				note(clients, ask{key, "GET", 0}, now(), "nil")
			} else {
				history = append(history, porcupine.Operation{ClientId: clients, Input: ask{key, "SET", n}, Call: now(), Output: "OK", Return: now()})
			}
		}
		var wg sync.WaitGroup
		for client := range clients {
			r := rand.New(rand.NewPCG(r.Uint64(), uint64(client)))
			wg.Go(func() {
				c, err := peer.Dial(s.Addr)
				if err != nil {
					return
				}
				defer c.Close()
				for {
					a := ask{r.IntN(keys), kindsOfAsk[r.IntN(len(kindsOfAsk))], r.IntN(1000)}
					call := now()
					reply := a.send(c)
					note(client, a, call, reply)
					if reply == "" {
						return
					}
				}
			})
		}
		go disturb(s, rand.New(rand.NewPCG(r.Uint64(), 2)), []string{"BGREWRITEAOF", "PING", "PING"})
		time.Sleep(time.Duration(10+r.IntN(90)) * time.Millisecond)
		s.Kill()
		wg.Wait()

		s = start(t, dir, args...)
		c := s.Dial(t)
		for key := range keys {
			a := ask{key, "GET", 0}
			call := now()
			reply := a.send(c)
			note(clients, a, call, reply)
			values[key] = none
			if reply != "nil" {
				n, err := strconv.Atoi(reply)
				if err != nil {
					t.Fatal(reply)
				}
				values[key] = n
			}
		}
		s.Kill()
		for i := range history {
			if history[i].Output == "" {
				history[i].Return = now() // or never: behind all that was seen
				unknown++
			}
		}
		asked += len(history)
		if result := porcupine.CheckOperationsTimeout(sharedKeys, history, 20*time.Second); result != porcupine.Ok {
			t.Fatalf("round %d: %s: %d operations have no order that explains them: %v", round, result, len(history), fmt.Sprint(history[max(0, len(history)-60):]))
		}
	}
	t.Logf("%d operations in %d rounds, of %d it is not known whether they happened", asked, times, unknown)
	if asked < 50*times || unknown < times/2 {
		t.Error("that is too few for the test to mean something")
	}
}
