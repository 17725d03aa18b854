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
			follow(t, b, a.Addr)
			eventually(t, "the replica is there", func() bool { return strings.Contains(field(t, a, "slave0"), "state=online") })
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
					if v := must(t, pair[0], "FAILOVER", "TO", host, port, "TIMEOUT", "20000"); v.Text != "OK" {
						t.Fatal(v)
					}
					eventually(t, "they have changed places", func() bool {
						return field(t, pair[0], "role") == "slave" && field(t, pair[1], "role") == "master" && field(t, pair[0], "master_link_status") == "up" &&
							field(t, pair[0], "master_failover_state") == "no-failover"
					})
				}
			}
			close(stop)
			wg.Wait()
			same(t, a, b)
			for i, n := range told {
				if got := must(t, a, "GET", fmt.Sprint("n", i)).Text; got != fmt.Sprint(n) || n == 0 {
					t.Errorf("n%d is %s, the client was told of %d", i, got, n)
				}
			}
			for _, s := range []*peer.Server{a, b} {
				if full := field(t, s, "sync_full"); full != "0" && !(s == a && full == "1") {
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
		if v := must(t, a, append([]string{"FAILOVER"}, args...)...); v.Text != want {
			t.Errorf("%v: %v, want %s", args, v, want)
		}
	}
	refused("ERR FAILOVER requires connected replicas.")
	refused("ERR No failover in progress.", "ABORT")
	follow(t, b, a.Addr)
	eventually(t, "the replica is there", func() bool { return strings.Contains(field(t, a, "slave0"), "state=online") })
	refused("ERR FAILOVER target HOST and PORT is not a replica.", "TO", "127.0.0.1", "1")
	refused("ERR FAILOVER timeout must be greater than 0", "TIMEOUT", "0")
	refused("ERR syntax error", "TO", "127.0.0.1")
	refused("ERR FAILOVER with force option requires both a timeout and target HOST and IP.", "FORCE")
	must(t, b, "DEBUG", "SLEEP", "0")
	go func() {
		if c, err := peer.Dial(b.Addr); err == nil {
			defer c.Close()
			_, _ = c.Do("DEBUG", "SLEEP", "3")
		}
	}()
	time.Sleep(200 * time.Millisecond)
	must(t, a, "SET", "k", "1")
	refused("OK", "TIMEOUT", "500")
	refused("ERR FAILOVER already in progress.")
	if state := field(t, a, "master_failover_state"); state != "waiting-for-sync" {
		t.Error(state)
	}
	began := time.Now()
	if v := must(t, a, "SET", "k", "2"); v.Text != "OK" || time.Since(began) < 200*time.Millisecond {
		t.Errorf("a write is replied %v after %v", v, time.Since(began))
	}
	if state, role := field(t, a, "master_failover_state"), field(t, a, "role"); state != "no-failover" || role != "master" {
		t.Error(state, role)
	}
	same(t, a, b)
}

// FAILOVER ABORT has the writes go on that were held back; with FORCE a replica that does not answer becomes the primary when
// the time is over, and what it lacks is lost; one that refuses leaves all as it was.
func TestFailoverAbortAndForce(t *testing.T) {
	a, b, goesOn := behind(t)
	host, port, _ := net.SplitHostPort(b.Addr)
	if v := must(t, a, "FAILOVER", "TO", host, port); v.Text != "OK" {
		t.Fatal(v)
	}
	if reason := field(t, a, "paused_reason"); reason != "failover_in_progress" {
		t.Errorf("what is paused: %s", reason)
	}
	writer := a.Dial(t)
	if err := writer.Send("SET", "k", "3"); err != nil || !writer.Silent(100*time.Millisecond) {
		t.Fatal("a write is not held back", err)
	}
	must(t, a, "CLIENT", "UNPAUSE") // of pauses of its own
	if !writer.Silent(100 * time.Millisecond) {
		t.Error("CLIENT UNPAUSE has let a write go on")
	}
	if v := must(t, a, "FAILOVER", "ABORT"); v.Text != "OK" {
		t.Error(v)
	}
	if state := field(t, a, "master_failover_state"); state != "no-failover" {
		t.Error(state)
	}
	if v, err := writer.Receive(); err != nil || v.Text != "OK" {
		t.Error(v, err)
	}
	// The replica has not acknowledged that write when the time is over.
	if v := must(t, a, "FAILOVER", "TO", host, port, "FORCE", "TIMEOUT", "200"); v.Text != "OK" {
		t.Fatal(v)
	}
	eventually(t, "the time is over", func() bool { return field(t, a, "master_failover_state") == "failover-in-progress" })
	goesOn()
	eventually(t, "they have changed places", func() bool {
		return field(t, b, "role") == "master" && field(t, a, "master_link_status") == "up" && field(t, a, "master_failover_state") == "no-failover"
	})
	must(t, b, "SET", "after", "1")
	same(t, b, a)
	// And back, to one that refuses.
	must(t, a, "ACL", "SETUSER", "default", "-psync")
	host, port, _ = net.SplitHostPort(a.Addr)
	if v := must(t, b, "FAILOVER", "TO", host, port, "TIMEOUT", "20000"); v.Text != "OK" {
		t.Fatal(v)
	}
	eventually(t, "it is over", func() bool { return field(t, b, "master_failover_state") == "no-failover" })
	must(t, a, "ACL", "SETUSER", "default", "+psync")
	if role := field(t, b, "role"); role != "master" {
		t.Error(role)
	}
	must(t, b, "SET", "last", "1")
	same(t, b, a)
}
