package replicas

// FAILOVER between limitkv and real servers, there and back.

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// A client counts on, through a failover to a replica and one back: no count that it was told of is lost, nobody needs a
// snapshot, and in the end both have the same.
func TestFailover(t *testing.T) {
	for kind, start := range map[string]func(*testing.T, ...string) *peer.Server{"redis": kinds["redis"], "limitkv": primary} {
		t.Run(kind, func(t *testing.T) {
			a, b := primary(t), start(t)
			peer.Follow(t, b, a.Addr)
			peer.Eventually(t, "the replica is there", func() bool { return strings.Contains(a.Info(t, "slave0"), "state=online") })
			stop := make(chan struct{})
			var wg sync.WaitGroup
			told := make([]int, 4)
			for i := range told {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for at := 0; ; {
						select {
						case <-stop:
							return
						default:
						}
						c, err := peer.Dial([]string{a.Addr, b.Addr}[at])
						if err != nil {
							continue
						}
						for {
							v, err := c.Do("INCR", fmt.Sprint("n", i))
							if err != nil || v.IsError() {
								if v.IsError() && !strings.HasPrefix(v.Text, "READONLY") {
									t.Errorf("INCR: %v", v)
								}
								at = 1 - at
								break
							}
							_, _ = fmt.Sscan(v.Text, &told[i])
							select {
							case <-stop:
								c.Close()
								return
							default:
							}
						}
						c.Close()
					}
				}()
			}
			for range 2 {
				for _, pair := range [][2]*peer.Server{{a, b}, {b, a}} {
					time.Sleep(200 * time.Millisecond)
					host, port, _ := net.SplitHostPort(pair[1].Addr)
					if v := pair[0].Must(t, "FAILOVER", "TO", host, port, "TIMEOUT", "20000"); v.Text != "OK" {
						t.Fatal(v)
					}
					peer.Eventually(t, "they have changed places", func() bool {
						return pair[0].Info(t, "role") == "slave" && pair[1].Info(t, "role") == "master" && pair[0].Info(t, "master_link_status") == "up" &&
							pair[0].Info(t, "master_failover_state") == "no-failover"
					})
				}
			}
			close(stop)
			wg.Wait()
			same(t, a, b)
			for i, n := range told {
				if got := a.Must(t, "GET", fmt.Sprint("n", i)).Text; got != fmt.Sprint(n) || n == 0 {
					t.Errorf("n%d is %s, the client was told of %d", i, got, n)
				}
			}
			for _, s := range []*peer.Server{a, b} {
				if full := s.Info(t, "sync_full"); full != "0" && !(s == a && full == "1") {
					t.Errorf("%s made %s snapshots", s.Name, full)
				}
			}
		})
	}
}

// What FAILOVER refuses, and a failover that comes to nothing.
func TestFailoverRefused(t *testing.T) {
	a, b := primary(t), kinds["redis"](t)
	refused := func(want string, args ...string) {
		t.Helper()
		if v := a.Must(t, append([]string{"FAILOVER"}, args...)...); v.Text != want {
			t.Errorf("%v: %v, want %s", args, v, want)
		}
	}
	refused("ERR FAILOVER requires connected replicas.")
	refused("ERR No failover in progress.", "ABORT")
	peer.Follow(t, b, a.Addr)
	peer.Eventually(t, "the replica is there", func() bool { return strings.Contains(a.Info(t, "slave0"), "state=online") })
	refused("ERR FAILOVER target HOST and PORT is not a replica.", "TO", "127.0.0.1", "1")
	refused("ERR FAILOVER timeout must be greater than 0", "TIMEOUT", "0")
	refused("ERR syntax error", "TO", "127.0.0.1")
	refused("ERR FAILOVER with force option requires both a timeout and target HOST and IP.", "FORCE")
	b.Must(t, "DEBUG", "SLEEP", "0")
	go func() {
		if c, err := peer.Dial(b.Addr); err == nil {
			defer c.Close()
			_, _ = c.Do("DEBUG", "SLEEP", "3")
		}
	}()
	time.Sleep(200 * time.Millisecond)
	a.Must(t, "SET", "k", "1")
	refused("OK", "TIMEOUT", "500")
	refused("ERR FAILOVER already in progress.")
	if state := a.Info(t, "master_failover_state"); state != "waiting-for-sync" {
		t.Error(state)
	}
	began := time.Now()
	if v := a.Must(t, "SET", "k", "2"); v.Text != "OK" || time.Since(began) < 200*time.Millisecond {
		t.Errorf("a write is replied %v after %v", v, time.Since(began))
	}
	if state, role := a.Info(t, "master_failover_state"), a.Info(t, "role"); state != "no-failover" || role != "master" {
		t.Error(state, role)
	}
	same(t, a, b)
}

// FAILOVER ABORT has the writes go on that were held back; with FORCE a replica that does not answer becomes the primary when
// the time is over, and what it lacks is lost; one that refuses leaves all as it was.
func TestFailoverAbortAndForce(t *testing.T) {
	a, b, goesOn := behind(t)
	host, port, _ := net.SplitHostPort(b.Addr)
	if v := a.Must(t, "FAILOVER", "TO", host, port); v.Text != "OK" {
		t.Fatal(v)
	}
	if reason := a.Info(t, "paused_reason"); reason != "failover_in_progress" {
		t.Errorf("what is paused: %s", reason)
	}
	writer := a.Dial(t)
	if err := writer.Send("SET", "k", "3"); err != nil || !writer.Silent(100*time.Millisecond) {
		t.Fatal("a write is not held back", err)
	}
	a.Must(t, "CLIENT", "UNPAUSE") // of pauses of its own
	if !writer.Silent(100 * time.Millisecond) {
		t.Error("CLIENT UNPAUSE has let a write go on")
	}
	if v := a.Must(t, "FAILOVER", "ABORT"); v.Text != "OK" {
		t.Error(v)
	}
	if state := a.Info(t, "master_failover_state"); state != "no-failover" {
		t.Error(state)
	}
	if v, err := writer.Receive(); err != nil || v.Text != "OK" {
		t.Error(v, err)
	}
	// The replica has not acknowledged that write when the time is over.
	if v := a.Must(t, "FAILOVER", "TO", host, port, "FORCE", "TIMEOUT", "200"); v.Text != "OK" {
		t.Fatal(v)
	}
	peer.Eventually(t, "the time is over", func() bool { return a.Info(t, "master_failover_state") == "failover-in-progress" })
	goesOn()
	peer.Eventually(t, "they have changed places", func() bool {
		return b.Info(t, "role") == "master" && a.Info(t, "master_link_status") == "up" && a.Info(t, "master_failover_state") == "no-failover"
	})
	b.Must(t, "SET", "after", "1")
	same(t, b, a)
	// And back, to one that refuses.
	a.Must(t, "ACL", "SETUSER", "default", "-psync")
	host, port, _ = net.SplitHostPort(a.Addr)
	if v := b.Must(t, "FAILOVER", "TO", host, port, "TIMEOUT", "20000"); v.Text != "OK" {
		t.Fatal(v)
	}
	peer.Eventually(t, "it is over", func() bool { return b.Info(t, "master_failover_state") == "no-failover" })
	a.Must(t, "ACL", "SETUSER", "default", "+psync")
	if role := b.Info(t, "role"); role != "master" {
		t.Error(role)
	}
	b.Must(t, "SET", "last", "1")
	same(t, b, a)
}
