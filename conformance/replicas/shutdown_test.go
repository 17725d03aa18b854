package replicas

// The end of a primary: it waits for replicas that are behind.

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// behind starts a primary with a replica that stands still and has not got all that was written.
func behind(t *testing.T, args ...string) (p, r *peer.Server, goesOn func()) {
	t.Helper()
	p = primary(t, args...)
	r = kinds["redis"](t)
	peer.Follow(t, r, p.Addr)
	peer.Eventually(t, "the replica is there", func() bool { return strings.Contains(p.Info(t, "slave0"), "state=online") })
	p.Must(t, "SET", "k", "1")
	peer.CaughtUp(t, p, r)
	stopped := true
	goesOn = func() {
		if stopped {
			stopped = false
			_ = r.Signal(peer.SIGCONT)
		}
	}
	if err := r.Signal(peer.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(goesOn)
	p.Must(t, "SET", "k", "2")
	return p, r, goesOn
}

// A primary that is told to end waits until its replica has all that was written. Writes are held back meanwhile.
func TestEndWaitsForReplica(t *testing.T) {
	for _, how := range []string{"SIGTERM", "SHUTDOWN"} {
		t.Run(how, func(t *testing.T) {
			p, r, goesOn := behind(t, "--shutdown-timeout", "60")
			writer, asker := p.Dial(t), p.Dial(t)
			if how == "SIGTERM" {
				if err := p.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			} else if err := asker.Send("SHUTDOWN"); err != nil {
				t.Fatal(err)
			}
			peer.Eventually(t, "it waits", func() bool {
				left, err := strconv.Atoi(p.Info(t, "shutdown_in_milliseconds"))
				return err == nil && left > 30_000 && left <= 60_000
			})
			if reason := p.Info(t, "paused_reason") + " " + p.Info(t, "paused_actions"); reason != "shutdown_in_progress write" {
				t.Errorf("what is paused: %s", reason)
			}
			if err := writer.Send("SET", "k", "3"); err != nil {
				t.Fatal(err)
			}
			if !writer.Silent(200*time.Millisecond) || p.Must(t, "GET", "k").Text != "2" {
				t.Error("a write is not held back")
			}
			p.Must(t, "CLIENT", "UNPAUSE") // of pauses of its own
			_ = p.Signal(syscall.SIGTERM)
			if p.Ends(300 * time.Millisecond) {
				t.Fatalf("it has ended:\n%s", p.Output())
			}
			goesOn()
			if !p.Ends(patience) {
				t.Fatal("it does not end")
			}
			p.Says(t, "Waiting for replicas before shutting down.", "1 of 1 replicas are in sync when shutting down.", "bye bye")
			if strings.Contains(p.Output(), "Lagging replica") {
				t.Errorf("the log tells of a replica that lags:\n%s", p.Output())
			}
			if got := r.Must(t, "GET", "k").Text; got != "2" {
				t.Errorf("the replica has %s", got)
			}
		})
	}
}

// It waits for no longer than shutdown-timeout, and with NOW, or where that is 0, not at all.
func TestEndWaitsNoLonger(t *testing.T) {
	for _, test := range []struct {
		timeout  string
		words    []string
		from, to time.Duration
	}{
		{"1", []string{"SHUTDOWN"}, 900 * time.Millisecond, patience},
		{"60", []string{"SHUTDOWN", "NOW"}, 0, patience},
		{"0", []string{"SHUTDOWN", "NOSAVE"}, 0, patience},
	} {
		t.Run(strings.Join(test.words, " ")+" "+test.timeout, func(t *testing.T) {
			p, _, _ := behind(t, "--shutdown-timeout", test.timeout)
			began := time.Now()
			if err := p.Dial(t).Send(test.words...); err != nil {
				t.Fatal(err)
			}
			if !p.Ends(test.to) || time.Since(began) < test.from {
				t.Errorf("after %v", time.Since(began))
			}
			p.Says(t, "Lagging replica", "state=online", "0 of 1 replicas are in sync when shutting down.", "bye bye")
		})
	}
}

// SHUTDOWN ABORT, and a last snapshot that cannot be written: all who wait for the end get an error, and the server goes on
// with writes.
func TestEndTakenBack(t *testing.T) {
	const failed = "ERR Errors trying to SHUTDOWN. Check logs."
	t.Run("ABORT", func(t *testing.T) {
		p, r, goesOn := behind(t, "--shutdown-timeout", "60")
		if v := p.Must(t, "SHUTDOWN", "ABORT"); v.Text != "ERR No shutdown in progress." {
			t.Error(v)
		}
		for range 3 {
			var askers []*peer.Conn
			for range 2 {
				c := p.Dial(t)
				if err := c.Send("SHUTDOWN"); err != nil {
					t.Fatal(err)
				}
				askers = append(askers, c)
			}
			peer.Eventually(t, "both wait", func() bool {
				return strings.Count(p.Must(t, "CLIENT", "LIST").Text, "cmd=shutdown") == 2 && p.Info(t, "blocked_clients") == "2"
			})
			writer := p.Dial(t)
			if err := writer.Send("INCR", "n"); err != nil {
				t.Fatal(err)
			}
			if v := p.Must(t, "SHUTDOWN", "ABORT"); v.Text != "OK" {
				t.Error(v)
			}
			for _, c := range askers {
				if v, err := c.Receive(); err != nil || v.Text != failed {
					t.Error(v, err)
				}
				c.Close()
			}
			if v, err := writer.Receive(); err != nil || v.IsError() {
				t.Error(v, err)
			}
		}
		p.Says(t, "Shutdown manually aborted.")
		if v := p.Must(t, "SHUTDOWN", "ABORT", "NOW"); v.Text != "ERR syntax error" {
			t.Error(v)
		}
		goesOn()
		same(t, p, r)
		if left := p.Info(t, "shutdown_in_milliseconds"); left != "" {
			t.Errorf("it still ends, in %s ms", left)
		}
	})
	t.Run("fails", func(t *testing.T) {
		p, _, goesOn := behind(t, "--shutdown-timeout", "60")
		c := p.Dial(t)
		if err := c.Send("SHUTDOWN", "SAVE"); err != nil {
			t.Fatal(err)
		}
		peer.Eventually(t, "it waits", func() bool { return p.Info(t, "shutdown_in_milliseconds") != "" })
		p.Must(t, "CONFIG", "SET", "rdb-key-save-delay", "30000000")
		p.Must(t, "CONFIG", "SET", "appendonly", "yes")
		goesOn()
		if v, err := c.Receive(); err != nil || v.Text != failed {
			t.Error(v, err)
		}
		p.Says(t, "Writing initial AOF, can't exit.", "Errors trying to shut down the server.")
		if v := p.Must(t, "SET", "k", "3"); v.Text != "OK" {
			t.Error(v)
		}
		if err := p.Dial(t).Send("SHUTDOWN", "NOSAVE", "FORCE"); err != nil || !p.Ends(patience) {
			t.Error("it does not end", err)
		}
	})
}
