// Mutual exclusion. Concurrent clients use a mutex: leases that end while the clock steps, renewals, releases, waits,
// connections that end in between. What they see must be one order of grants, in which two never hold the mutex, and fences
// rise.
package lock_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/limitkv/limitkv/commands/livetest"
)

// mutex is the model of the lock. Times are in ms.
type mutex struct {
	owner       string
	fence, last int64
	left        int64 // of the lease
	boundTo     int   // the connection of a lease that has no time
}

func (m mutex) held() bool { return m.owner != "" }

// free is the mutex when nobody holds it. There is one such state, so that the search for an order has less to do.
func (m mutex) free() mutex { return mutex{last: m.last} }

// linearInput is something that a client did. A reply of "" never came.
type linearInput struct {
	what, owner string
	lease       int64
	conn        int
	fence       int64
}

const unanswered = ""

// grant returns the states after a grant of a fence, 0 for one that nobody has seen; none if that is impossible.
func (m mutex) grant(in linearInput, fence int64) []mutex {
	again := m.held() && m.owner == in.owner
	switch {
	case m.held() && !again, fence != 0 && again && m.fence != 0 && fence != m.fence,
		fence != 0 && !(again && fence == m.fence) && fence <= m.last:
		return nil
	case fence != 0:
		m.fence, m.last = fence, max(m.last, fence)
	case !again:
		m.fence = 0
	}
	m.owner, m.left, m.boundTo = in.owner, in.lease, 0
	if in.lease == 0 {
		m.boundTo = in.conn
	}
	return []mutex{m}
}

func (m mutex) step(in linearInput, out string) []mutex {
	switch in.what {
	case "tick":
		if m.left -= tick; m.left <= 0 && m.boundTo == 0 {
			return []mutex{m.free()}
		}
		m.left = max(m.left, 0)
		return []mutex{m}
	case "close": // leases that are bound to it end
		if m.boundTo == in.conn {
			m = m.free()
		}
		return []mutex{m}
	case "try", "wait":
		var ok, fence, left, ahead int64
		if out == unanswered { // it had no effect, or led to a grant that nobody has seen
			return append(m.grant(in, 0), m)
		}
		fmt.Sscanf(out, "[%d %d %d %d]", &ok, &fence, &left, &ahead)
		if ok == 1 {
			return m.grant(in, fence)
		}
		if in.what == "try" && (!m.held() && ahead == 0 || m.owner == in.owner && m.held()) {
			return nil
		}
		return []mutex{m}
	case "release":
		if (out == "1") != (m.held() && m.owner == in.owner) {
			return nil
		}
		if out == "1" {
			m = m.free()
		}
		return []mutex{m}
	case "touch":
		if (out == "1") != (m.held() && m.owner == in.owner) {
			return nil
		}
		if out == "1" {
			m.left, m.boundTo = in.lease, 0
		}
		return []mutex{m}
	case "guard":
		if (out == "OK") != (m.held() && m.fence == in.fence && in.fence != 0) {
			return nil
		}
		return []mutex{m}
	}
	panic(in.what)
}

const tick = 10 // ms; leases are multiples of it

var linearModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{mutex{}} },
	Step: func(state, input, output any) (next []any) {
		for _, m := range state.(mutex).step(input.(linearInput), output.(string)) {
			next = append(next, m)
		}
		return next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v = %v", input, output) },
}

func TestLinearizable(t *testing.T) {
	const rounds, clients, each = 60, 5, 7
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := livetest.Start(t)
	did := map[string]int{}
	conns := 0
	for round := range rounds {
		s.Blocked(0) // clients of the last round may not have left the line yet
		s.Client().Want("OK", "FLUSHALL")
		var mu sync.Mutex
		var history []porcupine.Operation
		var wg sync.WaitGroup
		start := time.Now()
		note := func(id int, in linearInput, out string, call, ret time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			did[in.what]++
			granted := strings.HasPrefix(out, "[1 ")
			if granted {
				did["granted by "+in.what]++
			}
			if in.what == "wait" && !granted && out != unanswered {
				return // it is possible at any place
			}
			history = append(history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
		}
		const never = time.Duration(math.MaxInt64)
		wg.Go(func() { // the clock
			rng := rand.New(rand.NewPCG(seed, uint64(round)))
			admin := s.Client()
			for range 8 {
				time.Sleep(time.Duration(rng.IntN(400)) * time.Microsecond)
				n := 1 + rng.IntN(3)
				call := time.Since(start)
				admin.Do("LKV.CLOCK", "ADVANCE", n*tick)
				for range n {
					note(clients, linearInput{what: "tick"}, "", call, time.Since(start))
				}
			}
		})
		for id := range clients {
			mu.Lock()
			conns++
			conn, c := conns, s.Client()
			mu.Unlock()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(1000+round*clients+id)))
				var fence int64
				bound := false // whether a lease may end with the connection
				hangUp := func() {
					closing := time.Since(start) // before it: the server may know before Close returns
					if c.Close(); bound {
						note(id, linearInput{what: "close", conn: conn}, "", closing, never)
					}
				}
				again := func() {
					mu.Lock()
					defer mu.Unlock()
					conns++
					conn, c, bound = conns, s.Client(), false
				}
				for range each {
					in := linearInput{owner: fmt.Sprint("o", rng.IntN(3)), lease: tick * int64(rng.IntN(4)), conn: conn, fence: fence}
					var out string
					call := time.Since(start)
					switch n := rng.IntN(12); {
					case n < 3:
						in.what, bound = "try", bound || in.lease == 0
						out = c.Do("LK.ACQUIRE", "k", in.owner, in.lease)
					case n < 6:
						in.what, bound = "wait", bound || in.lease == 0
						c.Send("LK.ACQUIRE", "k", in.owner, in.lease, "BLOCK", tick*int64(1+rng.IntN(4)))
						var ok bool
						if out, ok = c.Poll(time.Duration(rng.IntN(3000)) * time.Microsecond); !ok {
							hangUp() // it disconnects while it waits, or has just been served
							note(id, in, unanswered, call, never)
							again()
							continue
						}
					case n < 8:
						in.what = "release"
						out = c.Do("LK.RELEASE", "k", in.owner)
					case n < 9:
						in.what, in.lease = "touch", in.lease+tick
						out = c.Do("LK.TOUCH", in.owner, in.lease, "k")
					case n < 11:
						in.what = "guard"
						out = c.Do("LK.GUARD", "k", fence)
					default:
						hangUp()
						again()
						continue
					}
					if strings.HasPrefix(out, "[1 ") {
						fmt.Sscanf(out, "[1 %d", &fence)
					}
					note(id, in, out, call, time.Since(start))
				}
				hangUp()
			})
		}
		wg.Wait()
		check(t, linearModel, history, did, fmt.Sprintf("round %d is not linearizable", round))
	}
	decided(t, did, rounds)
	for _, what := range []string{"granted by try", "granted by wait", "release", "touch", "guard", "close", "tick"} {
		if did[what] < rounds/2 {
			t.Errorf("only %d times %s", did[what], what)
		}
	}
}

// stepsMax is how many steps of a model the decision about a history may take: a thousand times what most take.
const stepsMax = 300_000

// check fails with wrong if a history does not fit a model. It counts the history in did if the decision would take too many
// steps. It counts steps, not time, so that a busy machine decides as much as an idle one.
func check(t *testing.T, model porcupine.NondeterministicModel, history []porcupine.Operation, did map[string]int, wrong string) {
	t.Helper()
	steps, step := 0, model.Step
	model.Step = func(state, input, output any) []any {
		if steps++; steps > stepsMax {
			return nil // so that the search ends
		}
		return step(state, input, output)
	}
	m := model.ToModel()
	legal := porcupine.CheckOperations(m, history)
	switch did["steps"] += steps; {
	case steps > stepsMax:
		did["undecided"]++
	case !legal:
		var b strings.Builder
		for _, op := range history {
			fmt.Fprintf(&b, "%d-%d client %d: %s\n", op.Call, op.Return, op.ClientId, m.DescribeOperation(op.Input, op.Output))
		}
		t.Fatalf("%s:\n%s", wrong, b.String())
	}
}

// decided fails if too many rounds were undecided.
func decided(t *testing.T, did map[string]int, rounds int) {
	t.Helper()
	t.Log(did)
	if did["undecided"] > rounds/10 {
		t.Errorf("%d of %d rounds were not decided in %d steps", did["undecided"], rounds, stepsMax)
	}
}
