package resp

// Which threads run the loops: threads are given and taken back at any moment, and the supervisor's rules.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestChaosOfThreads takes and gives threads at random while clients check that
// they get their replies.
func TestChaosOfThreads(t *testing.T) {
	var parted, replaced, left atomic.Int64
	chaos(t, Options{Loops: 3}, func(s *Server) func() {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := s.loops[1+rand.IntN(2)]
				switch rand.IntN(3) {
				case 0:
					if l.giveThread() {
						parted.Add(1)
					}
				case 1:
					if !l.run.shared.Load() {
						l.giveBack()
						left.Add(1)
					}
				case 2:
					s.replaceFirst()
					replaced.Add(1)
				}
				time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
			}
		}()
		return func() { close(stop); <-done }
	})
	if parted.Load() < 10 || replaced.Load() < 10 || left.Load() < 10 {
		t.Errorf("%d threads given, %d taken back, %d changed", parted.Load(), left.Load(), replaced.Load())
	}
}

// TestOneThread holds that loops share a thread while there is little to do.
func TestOneThread(t *testing.T) {
	s, addr := start(t, &echo{}, Options{Loops: 4})
	for range 8 {
		c := dial(t, "tcp", addr)
		for range 20 {
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
	}
	eventually(t, "the loops share a thread", func() bool { // they may not have, if the machine was busy
		for _, l := range s.loops[1:] {
			if !l.run.shared.Load() {
				return false
			}
		}
		return true
	})
}

// TestKeeps checks that a command counts as keeping the thread if nothing was read between two ticks of one round.
func TestKeeps(t *testing.T) {
	var b balance
	for i, x := range []struct {
		since, reads int64
		keeps        bool
	}{
		{0, 0, false}, {0, 0, false}, // it waits
		{5, 1, false}, {5, 1, true}, {5, 1, true}, // one command
		{5, 2, false}, {5, 9, false}, {5, 9, true}, // a round of many, then one of them
		{7, 9, false}, {0, 9, false}, {0, 9, false}, // the next round, and its end
	} {
		if keeps := b.keeps(x.since, x.reads); keeps != x.keeps {
			t.Errorf("step %d: %v", i, keeps)
		}
	}
}

// TestSlowCommand checks that a long command makes only the clients of
// its own loop wait, and that its thread is given back.
func TestSlowCommand(t *testing.T) {
	for slowLoop := range 3 {
		loops := make(chan int, 3)
		release := make(chan bool)
		h := &echo{
			onOpen: func(c *Conn) { loops <- c.Loop },
			on:     map[string]func(c *Conn, cmd Command){"slow": func(c *Conn, _ Command) { <-release; c.Out.OK() }},
		}
		s, addr := start(t, h, Options{Loops: 3})
		clients := make(map[int]*client)
		for range 3 {
			c := dial(t, "tcp", addr)
			clients[<-loops] = c
		}
		if len(clients) != 3 {
			t.Fatal("the clients are not spread")
		}
		clients[slowLoop].send("SLOW\r\nPING\r\n")
		time.Sleep(time.Millisecond)
		for i, c := range clients {
			if i != slowLoop {
				begin := time.Now()
				c.send("PING\r\n")
				c.expect("+PONG\r\n")
				if d := time.Since(begin); d > 2*time.Second {
					t.Errorf("a slow command of loop %d keeps loop %d for %v", slowLoop, i, d)
				}
			}
		}
		release <- true
		clients[slowLoop].expect("+OK\r\n+PONG\r\n")
		for _, c := range clients {
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
		eventually(t, "the threads are given back", func() bool {
			return s.loops[1].run.shared.Load() && s.loops[2].run.shared.Load()
		})
		for _, c := range clients {
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
		s.Close()
	}
}

// TestSupervisorRests checks that the supervisor does not run while there is nothing to do.
func TestSupervisorRests(t *testing.T) {
	s, addr := start(t, &echo{}, Options{Loops: 2})
	c := dial(t, "tcp", addr)
	for range 2 {
		eventually(t, "it sleeps", s.share.asleep.Load)
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		eventually(t, "it is awake", func() bool { return !s.share.asleep.Load() })
	}
}

// TestSupervisorTicksLess checks that ticks are few while there is little to do, and that a command which may keep its
// thread is still noticed as early.
func TestSupervisorTicksLess(t *testing.T) {
	release := make(chan bool)
	h := &echo{on: map[string]func(c *Conn, cmd Command){"slow": func(c *Conn, _ Command) {
		c.Others()
		<-release
		c.Out.OK()
	}}}
	loops := make(chan int, 1)
	h.onOpen = func(c *Conn) { loops <- c.Loop }
	s, addr := start(t, h, Options{Loops: 2})
	clients := make(map[int]*client)
	for range 2 {
		c := dial(t, "tcp", addr)
		clients[<-loops] = c
	}
	for range 3 {
		eventually(t, "there is little to do", func() bool {
			clients[0].send("PING\r\n")
			clients[0].expect("+PONG\r\n")
			return s.share.light.Load()
		})
		clients[0].send("SLOW\r\n")
		eventually(t, "it attends", func() bool { return !s.share.light.Load() })
		clients[1].send("PING\r\n") // gets no reply until the loop has its own thread
		clients[1].expect("+PONG\r\n")
		release <- true
		clients[0].expect("+OK\r\n")
		eventually(t, "the thread is given back", s.loops[1].run.shared.Load)
	}
}

// TestHeat holds the rules by which a loop gets a thread.
func TestHeat(t *testing.T) {
	s, _ := start(t, &echo{}, Options{Loops: 3})
	s.loops[1].count.Store(1)
	s.loops[2].count.Store(2)
	defer func() { s.loops[1].count.Store(0); s.loops[2].count.Store(0) }()
	b := &balance{}
	now := int64(0)
	heat := func(load float64, ticks int) {
		for range ticks {
			now += 10_000
			b.heat(s, load, flow{at: now})
		}
	}
	heat(0.5, 5*(hotTicks+1))
	heat(1, hotTicks-2)
	heat(0.5, 3)
	heat(1, hotTicks)
	if !s.loops[1].run.shared.Load() || !s.loops[2].run.shared.Load() {
		t.Error("a thread too early")
	}
	heat(1, 1) // without a meter, all processors count as idle
	if !s.loops[1].run.shared.Load() || s.loops[2].run.shared.Load() {
		t.Error("the loop with the most clients should have a thread")
	}
	heat(1, 2*(hotTicks+1))
	if !s.loops[1].run.shared.Load() {
		t.Error("a thread while another one is on trial")
	}
	b.trial.void()
	for range (hotTicks + 1) / 2 { // rounds of two ticks, counted as they end
		heat(0, 1)
		heat(2, 1)
	}
	heat(1, 1)
	if s.loops[1].run.shared.Load() {
		t.Error("the other loop should have a thread too")
	}
	s.loops[2].giveBack()
	eventually(t, "the thread is given back", s.loops[2].run.shared.Load)
}

func TestParseIdle(t *testing.T) {
	for text, want := range map[string]int64{
		"cpu  458076 222115 107296 344159 1674 0 17929 1897 0 0\ncpu0 1": 345833, "cpu 1 2 3 4 5 6": 9, "cpu 1 2 3 4\n5 6": -1, "": -1, "cpu 1 2 3 x 5 6": -1,
	} {
		got, ok := parseIdle([]byte(text))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", strings.TrimSpace(text), got, want)
		}
	}
	var m idleMeter
	m.open()
	if m.ok() && m.idleSeconds() <= 0 {
		t.Error("no idle time could be read")
	}
	m.close()
}

// TestOrderOfArrival sends a command on one connection and then, without waiting for its reply, another one on a new
// connection. The second is served after the first, whichever loops they are on, as long as one thread runs all loops. The test
// keeps it so: on a busy machine the first loop's thread may not run for so long that the supervisor thinks that a command
// keeps it. Then all loops would get threads, which serve their connections in no order.
func TestOrderOfArrival(t *testing.T) {
	var marked atomic.Int64
	h := &echo{on: map[string]func(c *Conn, cmd Command){
		"mark": func(c *Conn, cmd Command) {
			n, _ := ParseInt(cmd.Args[1])
			marked.Store(n)
			c.Out.OK()
		},
		"look": func(c *Conn, _ Command) { c.Out.Int(marked.Load()) },
	}}
	s, addr := start(t, h, Options{Loops: 3})
	s.share.freeze()
	const rounds = 300
	for _, fresh := range []bool{false, true} { // whether the first connection is new too
		overtaken := 0
		for i := range rounds {
			var others []*client // so that the two get other loops than before
			for range i % 3 {
				others = append(others, dial(t, "tcp", addr))
			}
			a := dial(t, "tcp", addr)
			if !fresh {
				a.send("PING\r\n")
				a.expect("+PONG\r\n")
			}
			a.send(fmt.Sprintf("MARK %d\r\n", i))
			b := dial(t, "tcp", addr)
			b.send("LOOK\r\n")
			if reply, err := b.r.ReadString('\n'); err != nil {
				t.Fatal(err)
			} else if reply != fmt.Sprintf(":%d\r\n", i) {
				overtaken++
			}
			for _, c := range append(others, a, b) {
				c.Close()
			}
		}
		if overtaken > rounds/100 {
			t.Errorf("fresh %v: overtaken %d times of %d", fresh, overtaken, rounds)
		}
	}
}

// TestFairLoops checks that clients get equally many turns, whichever loops they are on, if far more of them are ready than one
// epoll_wait reports.
func TestFairLoops(t *testing.T) {
	const clients, enough = 1000, 50_000
	var mu sync.Mutex
	conns := make([]*client, clients)
	turns := make([]int, clients)
	done := make(chan struct{})
	counting, total := false, 0
	h := &echo{on: map[string]func(c *Conn, cmd Command){
		"turn": func(c *Conn, cmd Command) {
			mu.Lock()
			defer mu.Unlock()
			if total == enough {
				return
			}
			i, _ := ParseInt(cmd.Args[1])
			if counting {
				turns[i]++
				total++
			}
			if total == enough {
				close(done)
				return
			}
			_, _ = fmt.Fprintf(conns[i], "TURN %d\r\n", i) // so that it is ready again at once
		},
	}}
	s, addr := start(t, h, Options{Loops: 2})
	s.share.freeze()
	mu.Lock()
	for i := range conns {
		conns[i] = dial(t, "tcp", addr)
	}
	mu.Unlock()
	for i, c := range conns {
		c.send(fmt.Sprintf("TURN %d\r\n", i))
	}
	mu.Lock()
	counting = true // the first ones have had some turns before the last one came
	mu.Unlock()
	<-done
	if least, most := slices.Min(turns), slices.Max(turns); least < most/2 {
		t.Errorf("%d turns, between %d and %d a client", total, least, most)
	}
}
