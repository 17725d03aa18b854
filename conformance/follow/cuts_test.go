package follow

// Links that break at every step: while the two sides greet each other, in the middle of a file, while it is loaded, in the
// middle of a command. However often that happens, the replica is a copy in the end.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// bytesMax is the most bytes that a connection passes before it breaks. Few and many are as likely.
const bytesMax = 128 << 10

// newBreaker is a link to a server whose connections break, until calm is set, and of which some are slow.
func newBreaker(t *testing.T, to string, r *rand.Rand, calm *atomic.Bool) *peer.Link {
	var mu sync.Mutex
	return peer.BadLink(t, to, func() (left int64, slow bool) {
		mu.Lock()
		defer mu.Unlock()
		if calm.Load() {
			return math.MaxInt64, false
		}
		return int64(math.Exp(r.Float64() * math.Log(bytesMax))), r.IntN(4) == 0
	})
}

// newListener listens at a port of its own until the test ends.
func newListener(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// accept serves connections until the listener is closed.
func accept(ln net.Listener, serve func(net.Conn)) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// TestCuts breaks the links of a chain again and again. Two of its replicas are killed meanwhile and begin anew.
func TestCuts(t *testing.T) {
	for _, from := range sources() {
		for _, how := range []string{"disabled", "swapdb", "on-empty-db"} {
			t.Run(from.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				r := seeded(t)
				primary := from.start(t, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", fmt.Sprint(16<<10<<r.IntN(8)))
				p := primary.Dial(t)
				p.Must(t, "DEBUG", "POPULATE", fmt.Sprint(1+r.IntN(5000)), "filler", "50")
				stop := load(t, primary, rand.New(rand.NewPCG(r.Uint64(), 2)))
				var calm atomic.Bool
				near := newBreaker(t, primary.Addr, rand.New(rand.NewPCG(r.Uint64(), 3)), &calm)
				first := peer.LimitKV(t, "--repl-diskless-load", how, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "65536")
				far := newBreaker(t, first.Addr, rand.New(rand.NewPCG(r.Uint64(), 4)), &calm)
				second := peer.LimitKV(t, "--repl-diskless-load", how)
				q, c := first.Dial(t), second.Dial(t)
				peer.Follow(t, q, near.Addr())
				peer.Follow(t, c, far.Addr())
				time.Sleep(6 * time.Second)
				// One that is killed while it loads, and leaves nothing behind that hurts.
				killed := peer.LimitKV(t, "--repl-diskless-load", how)
				peer.Follow(t, killed, near.Addr())
				time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
				killed.Kill()
				calm.Store(true)
				n := stop()
				time.Sleep(soonest)
				peer.CaughtUp(t, p, q)
				equal(t, p, q)
				peer.CaughtUp(t, q, c)
				equal(t, q, c)
				t.Logf("%d commands, %d links broken and %d of the second replica; %s full synchronisations, %s partial ones", n, near.Cuts.Load(),
					far.Cuts.Load(), p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok"))
				if near.Cuts.Load() == 0 || n < 100 {
					t.Error("that is too little to show anything")
				}
			})
		}
	}
}

// TestTwoPrimaries parts a primary from its replica, which is made a primary too. Clients write to both. Then the first one
// follows the second: what was written to it since is gone, and nothing else.
func TestTwoPrimaries(t *testing.T) {
	a, b := peer.LimitKV(t, "--repl-diskless-sync-delay", "0"), peer.LimitKV(t, "--repl-diskless-sync-delay", "0")
	p, q := a.Dial(t), b.Dial(t)
	p.Must(t, "RPUSH", "before", "1", "2")
	peer.Join(t, q, a)
	p.Must(t, "RPUSH", "before", "3")
	peer.CaughtUp(t, p, q)
	q.Must(t, "REPLICAOF", "NO", "ONE")
	p.Must(t, "SET", "lost", "1")
	p.Must(t, "RPUSH", "before", "lost")
	q.Must(t, "SET", "kept", "1")
	q.Must(t, "RPUSH", "before", "4")
	peer.Join(t, p, b)
	peer.CaughtUp(t, q, p)
	equal(t, q, p)
	if v := p.Must(t, "LRANGE", "before", "0", "-1"); v.String() != `["1", "2", "3", "4"]` {
		t.Errorf("LRANGE: %v", v)
	}
	if v := p.Must(t, "EXISTS", "lost", "kept"); v.String() != ":1" {
		t.Errorf("EXISTS: %v", v)
	}
	// One that has nothing of its own goes on where it was.
	p.Must(t, "REPLICAOF", "NO", "ONE")
	full := p.Info(t, "sync_full")
	peer.Join(t, q, a)
	p.Must(t, "SET", "more", "1")
	peer.CaughtUp(t, p, q)
	equal(t, p, q)
	if now := p.Info(t, "sync_full"); now != full {
		t.Errorf("%s full synchronisations, there were %s", now, full)
	}
}

// TestAnotherPrimary has a replica go on at another server of the same stream, in the middle of it: the database that the
// stream has selected is not selected again.
func TestAnotherPrimary(t *testing.T) {
	a, b, c := peer.LimitKV(t, "--repl-diskless-sync-delay", "0"), peer.LimitKV(t, "--repl-diskless-sync-delay", "0"), peer.LimitKV(t)
	p, q, r := a.Dial(t), b.Dial(t), c.Dial(t)
	peer.Join(t, q, a)
	peer.Join(t, r, a)
	p.Must(t, "SELECT", "3")
	p.Must(t, "SET", "before", "1")
	peer.CaughtUp(t, p, q)
	peer.CaughtUp(t, p, r)
	peer.Join(t, r, b)
	p.Must(t, "SET", "after", "1")
	peer.CaughtUp(t, p, q)
	peer.CaughtUp(t, q, r)
	equal(t, p, r)
	if v := q.Info(t, "sync_partial_ok"); v != "1" {
		t.Errorf("%s partial synchronisations", v)
	}
}
