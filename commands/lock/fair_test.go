// First come, first served. Concurrent clients use a lock and its line: waits that are served, time out or lose their
// connection, tries that must not barge, releases, renewals, leases that end while the clock steps. What they see must be one
// order, in which only the first in line gets the lock, and refused callers learn how long the line is.
//
// A wait is two operations: the caller joins the line, which the test sees in LK.INFO, and later it is granted the lock.
package lock_test

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

// fairLock is the model of the lock and its line. Times are in ms.
type fairLock struct {
	owner       string
	fence, last int64  // fence is 0 if nobody has seen the grant
	left        int64  // of the lease
	line        string // owners, each with a comma behind it
}

func (m fairLock) held() bool { return m.owner != "" }

// free is the lock when nobody holds it. There is one such state, so that the search for an order has less to do.
func (m fairLock) free() fairLock {
	m.owner, m.fence, m.left = "", 0, 0
	return m
}

func (m fairLock) first(owner string) bool { return strings.HasPrefix(m.line, owner+",") }

// without is the lock when an owner has left the line.
func (m fairLock) without(owner string) fairLock {
	if at := strings.Index(","+m.line, ","+owner+","); at >= 0 {
		m.line = m.line[:at] + m.line[at+len(owner)+1:]
	}
	return m
}

func (m fairLock) given(in linearInput, fence int64) []fairLock {
	if fence != 0 && fence <= m.last {
		return nil
	}
	m.owner, m.left, m.fence, m.last = in.owner, in.lease, fence, max(m.last, fence)
	return []fairLock{m}
}

func (m fairLock) step(in linearInput, out string) []fairLock {
	var ok, fence, left, ahead int64
	fmt.Sscanf(out, "[%d %d %d %d]", &ok, &fence, &left, &ahead)
	switch in.what {
	case "tick":
		if m.left -= tick; m.left <= 0 {
			m = m.free()
		}
		return []fairLock{m}
	case "join":
		m.line += in.owner + ","
		return []fairLock{m}
	case "granted":
		if m.held() || !m.first(in.owner) {
			return nil
		}
		return m.without(in.owner).given(in, fence)
	case "timeout", "leave":
		gone := m.without(in.owner)
		switch {
		case gone.line == m.line:
			return nil
		case in.what == "timeout" || m.held() || !m.first(in.owner):
			return []fairLock{gone}
		}
		return append(gone.given(in, 0), gone) // perhaps it was granted after its connection was gone
	case "try":
		again := m.held() && m.owner == in.owner
		switch {
		case ok == 1 && again:
			if m.fence != 0 && m.fence != fence {
				return nil
			}
			m.left, m.fence, m.last = in.lease, fence, max(m.last, fence)
			return []fairLock{m}
		case ok == 1 && (m.held() || m.line != ""), ok == 0 && (again || !m.held() && m.line == ""),
			ok == 0 && int(ahead) != strings.Count(m.line, ","):
			return nil
		case ok == 1:
			return m.given(in, fence)
		}
		return []fairLock{m}
	case "release", "touch":
		if (out == "1") != (m.held() && m.owner == in.owner) {
			return nil
		}
		if out == "1" && in.what == "release" {
			m = m.free()
		} else if out == "1" {
			m.left = in.lease
		}
		return []fairLock{m}
	}
	panic(in.what)
}

var fairModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{fairLock{}} },
	Step: func(state, input, output any) (next []any) {
		for _, m := range state.(fairLock).step(input.(linearInput), output.(string)) {
			next = append(next, m)
		}
		return next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v = %v", input, output) },
}

// fairRound is what the clients of a round share.
type fairRound struct {
	s       *livetest.Server
	start   time.Time
	mu      sync.Mutex
	history []porcupine.Operation
	did     map[string]int
}

func (r *fairRound) note(id int, in linearInput, out string, call, ret time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
	r.did[in.what]++
}

// wait waits in line, and may give up or lose its connection. It returns the connection to use next.
func (r *fairRound) wait(c, admin *livetest.Client, id int, rng *rand.Rand, in linearInput) *livetest.Client {
	block := tick * int64(rng.IntN(6))
	// until waits until LK.INFO shows the caller in line, or no longer.
	until := func(there bool, done func() bool) {
		for end := time.Now().Add(5 * time.Second); !done() && strings.Contains(admin.Do("LK.INFO", "k"), "["+in.owner+" alone ") != there; {
			if time.Now().After(end) {
				panic("the line does not change")
			}
		}
	}
	call := time.Since(r.start)
	c.Send("LK.ACQUIRE", "k", in.owner, in.lease, "BLOCK", block)
	in.what = "join"
	out, came := "", false
	until(true, func() bool {
		out, came = c.Poll(10 * time.Microsecond)
		return came
	})
	joined := time.Since(r.start)
	r.note(id, in, "", call, joined)
	if !came {
		out, came = c.Poll(time.Duration(rng.IntN(4000)) * time.Microsecond)
	}
	ret := time.Since(r.start)
	switch {
	case !came:
		c.Close()
		until(false, func() bool { return false })
		gone := time.Since(r.start)
		in.what = "leave" // or it was granted the lock, or its wait ended, and nobody read the reply
		r.note(id, in, "", call, gone)
		return r.s.Client()
	case strings.HasPrefix(out, "[1 "):
		in.what = "granted"
	default:
		in.what = "timeout"
	}
	r.note(id, in, out, call, ret)
	return c
}

func TestFirstComeFirstServed(t *testing.T) {
	const rounds, clients, each = 60, 5, 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := livetest.Start(t)
	did := map[string]int{}
	for round := range rounds {
		s.Blocked(0) // clients of the last round may not have left the line yet
		s.Client().Want("OK", "FLUSHALL")
		r := &fairRound{s: s, start: time.Now(), did: did}
		var wg sync.WaitGroup
		wg.Go(func() { // the clock
			rng, admin := rand.New(rand.NewPCG(seed, uint64(round))), s.Client()
			for range 8 {
				time.Sleep(time.Duration(rng.IntN(600)) * time.Microsecond)
				call := time.Since(r.start)
				admin.Do("LKV.CLOCK", "ADVANCE", tick)
				r.note(clients, linearInput{what: "tick"}, "", call, time.Since(r.start))
			}
		})
		for id := range clients {
			c, admin := s.Client(), s.Client()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(1000+round*clients+id)))
				mine := ""
				for n := range each {
					in := linearInput{owner: fmt.Sprintf("o%d.%d", id, n), lease: tick * int64(1+rng.IntN(4))}
					switch what := rng.IntN(10); {
					case what < 5:
						c = r.wait(c, admin, id, rng, in)
						mine = in.owner
						continue
					case what < 7:
						in.what = "try"
						if mine != "" && rng.IntN(3) == 0 {
							in.owner = mine
						}
						mine = in.owner
					case what < 9:
						in.what, in.owner = "release", mine
					default:
						in.what, in.owner = "touch", mine
					}
					if in.owner == "" {
						continue
					}
					call, out := time.Since(r.start), ""
					switch in.what {
					case "try":
						out = c.Do("LK.ACQUIRE", "k", in.owner, in.lease)
					case "release":
						out = c.Do("LK.RELEASE", "k", in.owner)
					case "touch":
						out = c.Do("LK.TOUCH", in.owner, in.lease, "k")
					}
					r.note(id, in, out, call, time.Since(r.start))
				}
				c.Close()
			})
		}
		wg.Wait()
		check(t, fairModel, r.history, did, fmt.Sprintf("round %d is not first come, first served", round))
	}
	decided(t, did, rounds)
	for _, what := range []string{"join", "granted", "try", "release", "tick"} {
		if did[what] < rounds {
			t.Errorf("only %d times %s", did[what], what)
		}
	}
	for _, what := range []string{"timeout", "leave", "touch"} {
		if did[what] < rounds/10 {
			t.Errorf("only %d times %s", did[what], what)
		}
	}
}
