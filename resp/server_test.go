package resp

// The servers over real sockets: each test runs on loops and on goroutines.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// start runs a server for a test and returns it with its address.
func start(t testing.TB, h Handler, o Options) (*Server, string) {
	t.Helper()
	o.Handler, o.Now = h, micros
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	addr, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return s, addr.String()
}

// bothServers runs a test on loops, on loops with a thread each and on
// goroutines.
func bothServers(t *testing.T, fn func(t *testing.T, o Options)) {
	t.Run("loops", func(t *testing.T) { fn(t, Options{Loops: 2}) })
	t.Run("fixed", func(t *testing.T) { fn(t, Options{Loops: 2, Fixed: true}) })
	t.Run("goroutines", func(t *testing.T) { fn(t, Options{Goroutines: true}) })
}

type client struct {
	net.Conn
	r *bufio.Reader
	t testing.TB
}

func dial(t testing.TB, network, addr string) *client {
	t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(60 * time.Second))
	return &client{nc, bufio.NewReader(nc), t}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) expect(want string) {
	c.t.Helper()
	buf := make([]byte, len(want))
	for n := 0; n < len(want); {
		k, err := c.r.Read(buf[n:])
		if err != nil {
			c.t.Fatalf("after %q: %v", buf[:n], err)
		}
		n += k
	}
	if string(buf) != want {
		c.t.Fatalf("got %q, want %q", buf, want)
	}
}

func (c *client) expectEOF() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("got byte %q, want end of connection", b)
	}
}

func TestServerBasics(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		h := &echo{}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		c.send("*1\r\n$4\r\nPING\r\n")
		c.expect("+PONG\r\n")
		c.send("PING\r\n*2\r\n$4\r\nECHO\r\n$3\r\na")
		c.expect("+PONG\r\n")
		c.send("bc\r\n")
		c.expect("$3\r\nabc\r\n")
		c.send("QUIT\r\nPING\r\n")
		c.expect("+OK\r\n")
		c.expectEOF()
		c = dial(t, "tcp", addr)
		c.send("*1\r\nfoo\r\n")
		c.expect("-ERR Protocol error: expected '$', got 'f'\r\n")
		c.expectEOF()
	})
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("%s: not within 30 s", what)
}

// TestPause checks that a waiting command delays the commands behind it, and that
// their order and the rest of the batch are preserved.
func TestPause(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		waiting := make(chan *Conn, 10)
		h := &echo{on: map[string]func(c *Conn, cmd Command){"wait": func(c *Conn, _ Command) {
			c.Pause()
			waiting <- c
		}}}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		c.send("PING\r\nWAIT\r\nECHO 1\r\nWAIT\r\nWAIT\r\nECHO 2\r\n*2\r\n$4\r\nECHO\r\n$5\r\nab")
		c.expect("+PONG\r\n")
		for i := range 3 {
			conn := <-waiting
			if i == 2 {
				c.send("cde\r\nPING\r\n")
			}
			if !conn.Post(func() {
				conn.Out.Int(int64(i))
				conn.Resume()
			}) {
				t.Fatal("not posted")
			}
			c.expect(fmt.Sprintf(":%d\r\n", i))
			if i == 0 {
				c.expect("$1\r\n1\r\n")
			}
		}
		c.expect("$1\r\n2\r\n$5\r\nabcde\r\n+PONG\r\n")
	})
}

// TestHangupWhilePaused checks that the end of a paused connection is noticed, also
// behind much input, and that its input is bounded.
func TestHangupWhilePaused(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		const limit = 3 << 20
		paused, closed := make(chan *Conn, 1), make(chan Reason, 1)
		h := &echo{
			onOpen:  func(c *Conn) { c.QueryBufferLimit = limit },
			on:      map[string]func(c *Conn, cmd Command){"wait": func(c *Conn, _ Command) { c.Pause(); paused <- c }},
			onClose: func(c *Conn) { closed <- c.Reason() },
		}
		_, addr := start(t, h, o)
		for _, more := range []int{0, 100, limit - 100, 4 * limit} {
			c := dial(t, "tcp", addr)
			c.send("WAIT\r\n")
			conn := <-paused
			go func() { _, _ = c.Write([]byte(strings.Repeat("PING\r\n", more/6))) }()
			want := ReasonPeer
			if more > limit {
				want = ReasonInput
			} else {
				eventually(t, "input is read", func() bool { return conn.QueryBytes() == int64(more/6*6) })
				c.Close()
			}
			select {
			case r := <-closed:
				if r != want {
					t.Errorf("reason %d with %d bytes sent", r, more)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("not noticed with %d bytes sent", more)
			}
			if n := conn.QueryBytes(); n > limit+readTurnBytes {
				t.Errorf("%d bytes held", n)
			}
			done := make(chan bool, 1)
			if conn.Post(func() { done <- conn.Gone() }) && !<-done {
				t.Error("not gone")
			}
		}
	})
}

// TestSlowReader checks that a client that does not read is disconnected when its
// output passes the limit, that others are served meanwhile, and that a client below
// the limit gets everything.
func TestSlowReader(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		closed := make(chan Reason, 10)
		big := strings.Repeat("x", 1<<20)
		h := &echo{
			onOpen: func(c *Conn) { c.OutputHard = 8 << 20 },
			onClose: func(c *Conn) {
				if c.Reason() != ReasonPeer {
					closed <- c.Reason()
				}
			},
			on: map[string]func(c *Conn, cmd Command){"big": func(c *Conn, _ Command) { c.Out.BulkString(big) }},
		}
		_, addr := start(t, h, o)
		patient := dial(t, "tcp", addr)
		patient.send(strings.Repeat("BIG\r\n", 6))
		slow := dial(t, "tcp", addr)
		other := dial(t, "tcp", addr)
		for range 50 {
			if _, err := slow.Write([]byte("BIG\r\n")); err != nil {
				break
			}
			other.send("PING\r\n")
			other.expect("+PONG\r\n")
		}
		select {
		case r := <-closed:
			if r != ReasonOutput {
				t.Errorf("reason %d", r)
			}
		case <-time.After(30 * time.Second):
			t.Error("not dropped")
		}
		for range 6 {
			patient.expect("$1048576\r\n" + big + "\r\n")
		}
		patient.send("PING\r\n")
		patient.expect("+PONG\r\n")
	})
}

// TestSoftOutputLimit checks that output may exceed the soft limit for a while.
func TestSoftOutputLimit(t *testing.T) {
	c := &Conn{OutputSoft: 100, OutputSoftMicros: 10}
	for i, step := range []struct {
		n, now int64
		over   bool
	}{{50, 0, false}, {101, 5, false}, {200, 15, false}, {100, 16, false}, {101, 17, false}, {101, 27, false}, {101, 28, true}} {
		if got := c.overOutput(step.n, step.now); got != step.over {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// TestPostFromAnywhere posts to connections that come and go.
func TestPostFromAnywhere(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		conns := make(chan *Conn, 100)
		h := &echo{onOpen: func(c *Conn) { conns <- c }}
		s, addr := start(t, h, o)
		var posted, ran atomic.Int64
		var all sync.WaitGroup
		for i := range 20 {
			c := dial(t, "tcp", addr)
			conn := <-conns
			for range 4 {
				all.Go(func() {
					for range 100 {
						if conn.Post(func() {
							ran.Add(1)
							conn.Out.Push(1)
							conn.Out.OK()
						}) {
							posted.Add(1)
						}
					}
				})
			}
			if i%2 == 0 {
				for range 400 {
					c.expect("*1\r\n+OK\r\n")
				}
			}
			c.Close()
		}
		all.Wait()
		s.Each(func(c *Conn) { c.Close(false) })
		eventually(t, "posted functions run", func() bool { return ran.Load() == posted.Load() })
		if posted.Load() < 1000 {
			t.Errorf("only %d posted", posted.Load())
		}
		eventually(t, "all are closed", func() bool { return h.closed.Load() == 20 })
	})
}

// TestManyConnections opens and closes many, spread evenly over the loops.
func TestManyConnections(t *testing.T) {
	const n = 2000
	h := &echo{}
	s, addr := start(t, h, Options{Loops: 2})
	for round := range 2 {
		clients := make([]net.Conn, n)
		for i := range clients {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Skip("no descriptors:", err)
			}
			clients[i] = nc
		}
		var perLoop [2]atomic.Int64
		eventually(t, "all are open", func() bool { return h.opened.Load() == int64(n*(round+1)) })
		var seen atomic.Int64
		s.Each(func(c *Conn) {
			perLoop[c.Loop].Add(1)
			seen.Add(1)
		})
		eventually(t, "Each sees all", func() bool { return seen.Load() == int64(n) })
		if perLoop[0].Load() != perLoop[1].Load() {
			t.Errorf("%d and %d connections", perLoop[0].Load(), perLoop[1].Load())
		}
		for i, nc := range clients {
			if i%10 == 0 {
				if _, err := nc.Write([]byte("PING\r\n")); err != nil {
					t.Fatal(err)
				}
			}
		}
		buf := make([]byte, 7)
		for i := 0; i < n; i += 10 {
			if _, err := io.ReadFull(clients[i], buf); err != nil || string(buf) != "+PONG\r\n" {
				t.Fatal(err)
			}
		}
		for _, nc := range clients {
			nc.Close()
		}
		eventually(t, "all are closed", func() bool { return h.closed.Load() == int64(n*(round+1)) })
	}
}

// TestBigArgument sends and receives much in one command.
func TestBigArgument(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		_, addr := start(t, &echo{}, o)
		c := dial(t, "tcp", addr)
		big := strings.Repeat("0123456789abcdef", 1<<18) // 4 MB
		go c.send(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\nPING\r\n", len(big), big))
		c.expect(fmt.Sprintf("$%d\r\n%s\r\n+PONG\r\n", len(big), big))
		many := strings.Repeat("$3\r\nabc\r\n", 100_000)
		go c.send("*100000\r\n" + many + "PING\r\n")
		c.expect("*100000\r\n" + many + "+PONG\r\n")
		pipeline := strings.Repeat("*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n", 100_000)
		go c.send(pipeline)
		c.expect(strings.Repeat("$3\r\nabc\r\n", 100_000))
	})
}

// TestFairness checks that a client that sends without end does not make other clients
// of its loop wait.
func TestFairness(t *testing.T) {
	_, addr := start(t, &echo{}, Options{Loops: 1})
	busy := dial(t, "tcp", addr)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := busy.Write([]byte(strings.Repeat("PING\r\n", 10000))); err != nil {
				return
			}
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, busy) }()
	c := dial(t, "tcp", addr)
	begin := time.Now()
	for range 100 {
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
	}
	close(stop)
	if d := time.Since(begin); d > 30*time.Second { // the machine may be busy; one that waits for the other waits for ever
		t.Errorf("100 replies took %v", d)
	}
}

// TestUnixSocket serves one, and removes it at the end.
func TestUnixSocket(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		conns := make(chan *Conn, 1)
		s, _ := start(t, &echo{onOpen: func(c *Conn) { conns <- c }}, o)
		path := t.TempDir() + "/s"
		if _, err := s.Listen("unix", path); err != nil {
			t.Fatal(err)
		}
		c := dial(t, "unix", path)
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		if conn := <-conns; conn.RemoteAddr() != path+":0" || conn.LocalAddr() != path+":0" || conn.Remote().IsValid() {
			t.Errorf("addresses %s and %s", conn.RemoteAddr(), conn.LocalAddr())
		}
		s.Close()
		c.expectEOF()
		if _, err := os.Stat(path); err == nil {
			t.Error("the socket is still there")
		}
		if _, err := s.Listen("tcp", "127.0.0.1:0"); err != ErrClosed {
			t.Errorf("Listen after Close: %v", err)
		}
	})
}

// TestWhatAConnectionTells checks the addresses and counters.
func TestWhatAConnectionTells(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		conns := make(chan *Conn, 1)
		_, addr := start(t, &echo{onOpen: func(c *Conn) { conns <- c }}, o)
		c := dial(t, "tcp", addr)
		conn := <-conns
		c.send("PING\r\nECHO a")
		c.expect("+PONG\r\n")
		eventually(t, "input is counted", func() bool { return conn.BytesIn() == 12 && conn.QueryBytes() == 6 })
		eventually(t, "output is counted", func() bool { return conn.BytesOut() == 7 && conn.OutputBytes() == 0 })
		if conn.LocalAddr() != addr || conn.RemoteAddr() != c.Conn.LocalAddr().String() {
			t.Errorf("addresses %s and %s", conn.RemoteAddr(), conn.LocalAddr())
		}
		if conn.ID != 1 || conn.LastActive() < conn.OpenedAt() || conn.OpenedAt() == 0 || (conn.Loop < 0) != o.Goroutines || (conn.Fd < 0) != o.Goroutines {
			t.Errorf("ID %d, loop %d, fd %d, opened %d, active %d", conn.ID, conn.Loop, conn.Fd, conn.OpenedAt(), conn.LastActive())
		}
	})
}

// TestRefusal holds that Opened may refuse.
func TestRefusal(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		_, addr := start(t, &echo{onOpen: func(c *Conn) {
			c.Out.Error("ERR max number of clients reached")
			c.Close(true)
		}}, o)
		c := dial(t, "tcp", addr)
		c.expect("-ERR max number of clients reached\r\n")
		c.expectEOF()
	})
}

// TestCloseSendsReplies checks that Close sends the pending replies, and
// disconnects clients that do not take them.
func TestCloseSendsReplies(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		big := strings.Repeat("x", 16<<20)
		ready := make(chan bool, 2)
		h := &echo{on: map[string]func(c *Conn, cmd Command){"big": func(c *Conn, _ Command) {
			c.Out.BulkString(big)
			ready <- true
		}}}
		s, addr := start(t, h, o)
		reads, idle, stuck := dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr)
		reads.send("BIG\r\n")
		stuck.send("BIG\r\n")
		<-ready
		<-ready
		eventually(t, "all are open", func() bool { return h.opened.Load() == 3 })
		done := make(chan struct{})
		go func() { s.Close(); close(done) }()
		reads.expect("$16777216\r\n" + big + "\r\n")
		reads.expectEOF()
		idle.expectEOF()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("Close does not return")
		}
		if h.closed.Load() != 3 {
			t.Errorf("%d closed", h.closed.Load())
		}
	})
}

// TestCloseRefusesFirst checks that a client whose connection Close ended cannot reconnect, since the listeners closed first.
func TestCloseRefusesFirst(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		const rounds, clients = 20, 8
		for range rounds {
			h := &echo{}
			s, addr := start(t, h, o)
			again := make(chan error, clients)
			for range clients {
				c := dial(t, "tcp", addr)
				go func() {
					_, _ = c.r.ReadByte()
					nc, err := net.Dial("tcp", addr)
					if err == nil {
						nc.Close()
					}
					again <- err
				}()
			}
			eventually(t, "all are open", func() bool { return h.opened.Load() == clients })
			s.Close()
			for range clients {
				if err := <-again; err == nil {
					t.Fatal("a client connected after its connection had ended")
				}
			}
		}
	})
}
