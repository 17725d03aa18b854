package replicas

// Restarts: a primary and a replica that come back with their snapshots go on where they were, without another one.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// saved ends a server that is to keep its keys, as an operator does.
func saved(t *testing.T, s *peer.Server) {
	t.Helper()
	s.Stop()
	if out := s.Output(); !strings.Contains(out, "DB saved on disk") {
		t.Fatalf("%s has saved nothing:\n%s", s.Name, out)
	}
}

// A primary comes back: its replica goes on, and keys that expired meanwhile are gone there too. Both real servers and
// limitkv do so, with each other's replicas.
func TestPrimaryComesBack(t *testing.T) {
	limitkv := func(t *testing.T, args ...string) *peer.Server { return primary(t, args...) }
	redis := func(t *testing.T, args ...string) *peer.Server {
		return kinds["redis"](t, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)
	}
	for _, pair := range []struct {
		name     string
		p, again func(*testing.T, ...string) *peer.Server
		r        func(*testing.T, ...string) *peer.Server
	}{
		{"limitkv, of redis", limitkv, limitkv, redis},
		{"limitkv, of limitkv", limitkv, limitkv, limitkv},
		{"redis, of limitkv", redis, redis, limitkv},
		{"limitkv in place of redis, of redis", redis, limitkv, redis},
		{"redis in place of limitkv, of redis", limitkv, redis, redis},
	} {
		t.Run(pair.name, func(t *testing.T) {
			args := []string{"--dir", t.TempDir(), "--save", "3600 1"}
			p, r := pair.p(t, args...), pair.r(t)
			peer.Follow(t, r, p.Addr)
			peer.Eventually(t, "the replica is there", func() bool { return r.Info(t, "master_link_status") == "up" })
			p.Must(t, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
			c := p.Dial(t)
			for i := range 60 {
				for _, args := range [][]string{{"SELECT", fmt.Sprint(i % 3)}, {"SET", fmt.Sprint("stays", i), "v"}, {"SET", fmt.Sprint("goes", i), "v", "PX", "1"}} {
					if v, err := c.Do(args...); err != nil || v.Text != "OK" {
						t.Fatal(v, err)
					}
				}
			}
			peer.CaughtUp(t, p, r)
			id := p.Info(t, "master_replid")
			saved(t, p)
			p = pair.again(t, args...)
			if was, now := p.Info(t, "master_replid2"), p.Info(t, "master_replid"); was != id || now == id {
				t.Errorf("the primary was %s, and says that it was %s and is %s", id, was, now)
			}
			r.Must(t, "CONFIG", "RESETSTAT")
			peer.Follow(t, r, p.Addr)
			same(t, p, r)
			if full, partial := p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok"); full != "0" || partial != "1" {
				t.Errorf("%s full and %s partial synchronisations:\n%s\n%s", full, partial, p.Output(), r.Output())
			}
			for db := range 3 {
				for _, s := range []*peer.Server{p, r} {
					if got := peer.Field(s.Must(t, "INFO", "keyspace").Text, fmt.Sprint("db", db)); !strings.HasPrefix(got, "keys=20,expires=0") {
						t.Errorf("%s, database %d: %s", s.Name, db, got)
					}
				}
			}
			p.Must(t, "SET", "after", "1")
			same(t, p, r)
		})
	}
}

// A replica comes back while its primary has gone on, in the database that the stream had selected.
func TestReplicaComesBack(t *testing.T) {
	for kind, start := range map[string]func(*testing.T, ...string) *peer.Server{"redis": kinds["redis"], "limitkv": primary} {
		t.Run(kind, func(t *testing.T) {
			p := start(t, "--repl-diskless-sync-delay", "0")
			host, port, _ := strings.Cut(p.Addr, ":")
			args := []string{"--dir", t.TempDir(), "--save", "3600 1", "--replicaof", host + " " + port}
			r := primary(t, args...)
			c := p.Dial(t)
			set := func(from, to int) {
				t.Helper()
				for i := from; i < to; i++ {
					if v, err := c.Do("SET", fmt.Sprint("k", i), "v"); err != nil || v.Text != "OK" {
						t.Fatal(v, err)
					}
				}
			}
			if v, err := c.Do("SELECT", "5"); err != nil || v.Text != "OK" {
				t.Fatal(v, err)
			}
			set(0, 10)
			same(t, p, r)
			saved(t, r)
			set(10, 20) // without another SELECT in the stream
			r = primary(t, args...)
			same(t, p, r)
			if full, partial := p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok"); full != "1" || partial != "1" {
				t.Errorf("%s full and %s partial synchronisations:\n%s", full, partial, r.Output())
			}
			if got := peer.Field(r.Must(t, "INFO", "keyspace").Text, "db5"); !strings.HasPrefix(got, "keys=20,") {
				t.Errorf("database 5: %s", got)
			}
		})
	}
}

// A primary that comes back with a snapshot which is older than what its replica has sends it all anew.
func TestOlderSnapshot(t *testing.T) {
	args := []string{"--dir", t.TempDir()}
	p, r := primary(t, args...), primary(t)
	peer.Follow(t, r, p.Addr)
	peer.Eventually(t, "the replica is there", func() bool { return r.Info(t, "master_link_status") == "up" })
	p.Must(t, "SET", "a", "1")
	p.Must(t, "SAVE")
	p.Must(t, "SET", "b", "1")
	same(t, p, r)
	p.Kill()
	p = primary(t, append(args, "--save", "3600 1")...)
	peer.Follow(t, r, p.Addr)
	same(t, p, r)
	if full, n := p.Info(t, "sync_full"), r.Must(t, "DBSIZE").Text; full != "1" || n != "1" {
		t.Errorf("%s full synchronisations, and %s keys", full, n)
	}
}

// A replica that is told to follow another server and then its primary again goes on in the database that the stream had
// selected.
func TestFollowAgain(t *testing.T) {
	for kind, start := range map[string]func(*testing.T, ...string) *peer.Server{"redis": kinds["redis"], "limitkv": primary} {
		t.Run(kind, func(t *testing.T) {
			p, r := start(t, "--repl-diskless-sync-delay", "0"), primary(t)
			peer.Follow(t, r, p.Addr)
			peer.Eventually(t, "the replica is there", func() bool { return r.Info(t, "master_link_status") == "up" })
			c := p.Dial(t)
			for i := range 3 {
				for _, args := range [][]string{{"SELECT", "5"}, {"SET", fmt.Sprint("k", i), "v"}} {
					if v, err := c.Do(args...); err != nil || v.Text != "OK" {
						t.Fatal(v, err)
					}
				}
				peer.CaughtUp(t, p, r)
				peer.Follow(t, r, "127.0.0.1:1")
				if v, err := c.Do("SET", fmt.Sprint("meanwhile", i), "v"); err != nil || v.Text != "OK" {
					t.Fatal(v, err)
				}
				peer.Follow(t, r, p.Addr)
				same(t, p, r)
			}
			if full, partial := p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok"); full != "1" || partial != "3" {
				t.Errorf("%s full and %s partial synchronisations", full, partial)
			}
			if got := peer.Field(r.Must(t, "INFO", "keyspace").Text, "db5"); !strings.HasPrefix(got, "keys=6,") {
				t.Errorf("database 5: %s", got)
			}
		})
	}
}

// A replica that starts reads all that is on its disk, and then comes to its primary: what is old is gone afterwards.
func TestLoadsBeforeItFollows(t *testing.T) {
	for _, kept := range []string{"snapshot", "log"} {
		t.Run(kept, func(t *testing.T) {
			p := primary(t)
			p.Must(t, "SET", "new", "v")
			args := []string{"--dir", t.TempDir(), "--save", "3600 1", "--enable-debug-command", "yes"}
			if kept == "log" {
				args = append(args, "--appendonly", "yes")
			}
			r := primary(t, args...)
			r.Must(t, "DEBUG", "POPULATE", "200000")
			if kept == "log" {
				r.Must(t, "BGREWRITEAOF")
				peer.Eventually(t, "the log is rewritten", func() bool {
					return r.Info(t, "aof_rewrite_in_progress")+r.Info(t, "aof_rewrite_scheduled") == "00"
				})
				r.Must(t, "SET", "old", "v")
			}
			saved(t, r)
			host, port, _ := strings.Cut(p.Addr, ":")
			r = primary(t, append(args, "--replicaof", host+" "+port)...)
			peer.Eventually(t, "it follows", func() bool { return r.Info(t, "master_link_status") == "up" })
			same(t, p, r)
			out := r.Output()
			if loaded, connected := strings.Index(out, "DB loaded from"), strings.Index(out, "Connecting to MASTER"); loaded < 0 || connected < loaded {
				t.Errorf("loaded at %d, connected at %d of\n%s", loaded, connected, out)
			}
		})
	}
}
