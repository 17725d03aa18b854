package replicas

// What clients are told of replicas: WAIT, min-replicas-to-write, ROLE, INFO, CLIENT LIST.

import (
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestWait(t *testing.T) {
	p := primary(t)
	c := p.Dial(t)
	do := func(args ...string) string {
		t.Helper()
		v, err := c.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		return v.Text
	}
	if got := do("WAIT", "1", "50"); got != "0" {
		t.Errorf("%s replicas, and there are none", got)
	}
	one, two := kinds["redis"](t, "--appendonly", "yes"), kinds["redis"](t)
	peer.Follow(t, one, p.Addr)
	peer.Follow(t, two, p.Addr)
	peer.Eventually(t, "the replicas are there", func() bool { return do("SET", "k", "v") == "OK" && do("WAIT", "2", "1000") == "2" })
	late := 0
	for i := range 50 {
		began := time.Now()
		if do("INCR", "n"); do("WAIT", "2", "10000") != "2" {
			t.Fatalf("the %dth WAIT", i)
		}
		if time.Since(began) > 500*time.Millisecond {
			late++
		}
	}
	if late > 10 { // at once, not when the next second's acknowledgement comes
		t.Errorf("%d of 50 WAIT took more than half a second", late)
	}
	if got := do("WAIT", "3", "50"); got != "2" {
		t.Errorf("%s of 3", got)
	}
	do("MULTI")
	do("INCR", "n")
	do("WAIT", "2", "0")
	if v, err := c.Do("EXEC"); err != nil || len(v.Items) != 2 || v.Items[1].Text > "2" {
		t.Errorf("in a transaction: %v %v", v, err)
	}
	peer.Eventually(t, "a replica has it on its disk", func() bool {
		do("INCR", "n")
		v, err := c.Do("WAITAOF", "0", "1", "2000")
		return err == nil && len(v.Items) == 2 && v.Items[1].Text == "1"
	})
	if v, _ := c.Do("WAITAOF", "0", "2", "100"); len(v.Items) != 2 || v.Items[1].Text != "1" {
		t.Errorf("on two disks: %v", v)
	}
	if role := p.Must(t, "ROLE"); len(role.Items) != 3 || len(role.Items[2].Items) != 2 || role.Items[0].Text != "master" {
		t.Errorf("ROLE: %v", role)
	}
	if list := p.Must(t, "CLIENT", "LIST", "TYPE", "replica").Text; strings.Count(list, " flags=S ") != 2 {
		t.Errorf("CLIENT LIST: %s", list)
	}

	p.Must(t, "CONFIG", "SET", "min-replicas-to-write", "2", "min-replicas-max-lag", "2")
	if got := do("SET", "k", "v"); got != "OK" {
		t.Error(got)
	}
	two.Stop()
	peer.Eventually(t, "writes are refused", func() bool { return strings.HasPrefix(do("SET", "k", "v"), "NOREPLICAS") })
	if got := do("GET", "k"); got != "v" {
		t.Errorf("a read: %s", got)
	}
	if got := p.Info(t, "min_slaves_good_slaves"); got != "1" {
		t.Errorf("%s good replicas", got)
	}
	p.Must(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	if got := do("SET", "k", "v"); got != "OK" {
		t.Error(got)
	}
	if n := p.Must(t, "CLIENT", "KILL", "TYPE", "replica").Text; n != "1" {
		t.Errorf("%s replicas were killed", n)
	}
}

// The backlog keeps what it is told to, and goes when nobody needs it; then a replica loads anew.
func TestBacklog(t *testing.T) {
	p := primary(t, "--repl-backlog-ttl", "1", "--repl-backlog-size", "1b")
	if got := p.Info(t, "repl_backlog_size"); got != "16384" {
		t.Errorf("a backlog of %s bytes", got)
	}
	r := kinds["redis"](t)
	peer.Follow(t, r, p.Addr)
	p.Must(t, "SET", "k", strings.Repeat("x", 100_000))
	same(t, p, r)
	if got := p.Info(t, "repl_backlog_active"); got != "1" {
		t.Error(got)
	}
	before := p.Info(t, "master_replid")
	r.Must(t, "REPLICAOF", "NO", "ONE")
	peer.Eventually(t, "the backlog is let go", func() bool { return p.Info(t, "repl_backlog_active") == "0" })
	if after := p.Info(t, "master_replid"); after == before {
		t.Error("the stream has its name still")
	}
	p.Must(t, "SET", "after", "1")
	p.Must(t, "CONFIG", "SET", "repl-backlog-ttl", "9223372036854775807")
	peer.Follow(t, r, p.Addr)
	same(t, p, r)
	r.Must(t, "REPLICAOF", "NO", "ONE")
	time.Sleep(2500 * time.Millisecond) // it is looked every second
	if got := p.Info(t, "repl_backlog_active"); got != "1" {
		t.Error("the backlog is let go that is to be kept for ever")
	}
	if full := p.Info(t, "sync_full"); full != "2" {
		t.Errorf("%s full synchronisations", full)
	}
}
