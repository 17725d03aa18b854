package resp

// Rounds, as seen by code that is called at their ends.

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRounds checks that after each command there is a call of Round that begins after it, whichever thread runs the loop and
// however long the command takes, and that such a call always comes if InRound was true.
func TestRounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var made atomic.Pointer[Server]
	var done, promised, seen atomic.Int64 // commands, those of them that saw InRound, and the value that Round saw
	work := func(c *Conn, _ Command) {
		done.Add(1)
		if s := made.Load(); s != nil && s.InRound() {
			promised.Store(done.Load())
		}
		c.Out.OK()
	}
	h := &echo{on: map[string]func(c *Conn, cmd Command){"work": work, "long": func(c *Conn, cmd Command) {
		c.Others()
		time.Sleep(15 * time.Millisecond)
		work(c, cmd)
	}}}
	s, addr := start(t, h, Options{Loops: 3, Round: func() int64 {
		seen.Store(max(seen.Load(), done.Load()))
		return 0
	}})
	made.Store(s)
	var clients []*client
	for range 6 {
		clients = append(clients, dial(t, "tcp", addr))
	}
	for i := range 300 {
		c := clients[rng.IntN(len(clients))]
		switch rng.IntN(10) {
		case 0:
			c.send("LONG\r\n")
		default:
			c.send("WORK\r\n")
		}
		c.expect("+OK\r\n")
		eventually(t, "the round that was promised", func() bool { return seen.Load() >= promised.Load() })
		switch {
		case i%7 == 0:
			s.loops[1+rng.IntN(2)].giveThread()
		case i%11 == 0:
			s.replaceFirst()
		}
	}
	if promised.Load() < 100 {
		t.Errorf("a round was promised to %d commands", promised.Load())
	}
	eventually(t, "all rounds end", func() bool { return !s.InRound() })
}

// TestRoundAgain checks that a round comes without an event if Round requested it, and not otherwise.
func TestRoundAgain(t *testing.T) {
	for _, micros := range []int64{1, 999, 1000, 20_000} {
		var rounds, left atomic.Int64
		s, addr := start(t, &echo{}, Options{Loops: 1, Round: func() int64 {
			rounds.Add(1)
			if left.Add(-1) < 0 {
				return 0
			}
			return micros
		}})
		c := dial(t, "tcp", addr)
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		eventually(t, "its round ends", func() bool { return !s.InRound() })
		time.Sleep(5 * time.Millisecond)
		before := rounds.Load()
		left.Store(5)
		began := time.Now()
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		eventually(t, "rounds without events", func() bool { return rounds.Load() >= before+6 })
		if took := time.Since(began).Microseconds(); took < 5*micros {
			t.Errorf("five rounds each %d µs come within %d", micros, took)
		}
		time.Sleep(5 * time.Millisecond)
		if n := rounds.Load() - before; n > 6 {
			t.Errorf("%d rounds in place of 6", n)
		}
	}
}

func TestWatch(t *testing.T) {
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(event)
	s, _ := start(t, &echo{}, Options{Loops: 2})
	var calls, inside atomic.Int64
	if !s.Watch(event, func() {
		if s.InRound() {
			inside.Add(1)
		}
		calls.Add(1)
	}) {
		t.Fatal("there are no loops")
	}
	for i := range int64(100) {
		if i%10 == 0 {
			s.replaceFirst()
		}
		if _, err := unix.Write(event, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a call", func() bool { return calls.Load() > i })
	}
	if calls.Load() != 100 || inside.Load() != 100 {
		t.Errorf("%d calls for 100 events, %d of them in a round", calls.Load(), inside.Load())
	}
	none, err := NewServer(Options{Handler: &echo{}, Now: func() int64 { return 0 }, Goroutines: true})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if none.Watch(event, func() {}) {
		t.Error("somebody watches where there are no loops")
	}
}
