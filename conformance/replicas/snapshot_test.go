package replicas

// A snapshot for replicas that takes long: what INFO says meanwhile, that it ends when nobody wants it, and that the end of
// the server does not wait for it.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestSlowSnapshot(t *testing.T) {
	const minutes = "100000000" // microseconds that each key takes more: nothing here waits for that
	for _, c := range []struct{ direct, log string }{
		{"yes", "Background RDB transfer started by pid "}, {"no", "Background saving started by pid "},
	} {
		p := primary(t, "--repl-diskless-sync", c.direct)
		p.Must(t, "SET", "a", "b")
		p.Must(t, "CONFIG", "SET", "rdb-key-save-delay", minutes)
		wants := func(state string, count int) {
			peer.Eventually(t, fmt.Sprintf("a snapshot is made (%s) for %d replicas:\n%s", state, count, p.Must(t, "INFO", "replication").Text), func() bool {
				info := p.Must(t, "INFO").Text
				return strings.Count(info, "state=wait_bgsave") == count && strings.Contains(info, fmt.Sprintf("\r\nconnected_slaves:%d\r\n", count)) &&
					strings.Contains(info, "\r\nrdb_bgsave_in_progress:"+state+"\r\n")
			})
		}
		sync := func() *peer.Conn {
			conn := p.Dial(t)
			if _, err := conn.Do("REPLCONF", "capa", "eof"); err != nil {
				t.Fatal(err)
			}
			if err := conn.Send("PSYNC", "?", "-1"); err != nil {
				t.Fatal(err)
			}
			return conn
		}
		one := sync()
		wants("1", 1)
		other := sync()
		wants("1", 2)
		one.Close()
		other.Close()
		wants("0", 0) // nobody is left who wants it
		p.Says(t, c.log)
		// The end of the server does not wait for a replica that is slow to take its snapshot.
		sync()
		wants("1", 1)
		_ = p.Dial(t).Send("SHUTDOWN", "NOSAVE")
		if !p.Ends(30 * time.Second) {
			t.Fatalf("it does not end:\n%s", p.Output())
		}
	}
}

// FLUSHALL makes a snapshot under way worthless: it ends, and who waits for it is sent one of what is there now. That holds
// for a replica that does not take its snapshot, too.
func TestFlushedSnapshot(t *testing.T) {
	for _, direct := range []string{"yes", "no"} {
		p := primary(t, "--repl-diskless-sync", direct, "--repl-diskless-sync-delay", "0", "--rdbcompression", "no")
		p.Must(t, "DEBUG", "POPULATE", "2000", "key", "10000")
		p.Must(t, "CONFIG", "SET", "rdb-key-save-delay", "100000000")
		r := peer.LimitKV(t)
		peer.Follow(t, r, p.Addr)
		running := func() bool { return p.Info(t, "rdb_bgsave_in_progress") == "1" }
		peer.Eventually(t, "a snapshot is made", running)
		p.Must(t, "FLUSHALL")
		p.Must(t, "CONFIG", "SET", "rdb-key-save-delay", "0")
		p.Must(t, "SET", "k", "v")
		same(t, p, r)
		if n := p.Info(t, "sync_full"); n != "2" {
			t.Errorf("%s full synchronisations", n)
		}
		if direct == "no" { // it is sent when it is whole
			continue
		}
		p.Must(t, "DEBUG", "POPULATE", "2000", "key", "10000")
		idle := p.Dial(t)
		if _, err := idle.Do("REPLCONF", "capa", "eof"); err != nil {
			t.Fatal(err)
		}
		if err := idle.Send("PSYNC", "?", "-1"); err != nil {
			t.Fatal(err)
		}
		peer.Eventually(t, "another one is made", running)
		p.Must(t, "FLUSHALL")
		peer.Eventually(t, "it has ended", func() bool { return !running() && p.Info(t, "connected_slaves") == "1" })
		same(t, p, r)
	}
}

// What waits for replicas is in memory once, however many there are. It is neither theirs as clients, nor does maxmemory count
// what is more than the backlog.
func TestMemoryOfStream(t *testing.T) {
	p := primary(t, "--repl-backlog-size", "16kb", "--client-output-buffer-limit", "replica 0 0 0", "--maxmemory-clients", "1mb")
	p.Must(t, "SET", "k", "v")
	p.Must(t, "CONFIG", "SET", "rdb-key-save-delay", "100000000")
	for range 3 {
		if err := p.Dial(t).Send("SYNC"); err != nil {
			t.Fatal(err)
		}
	}
	number := func(info, name string) (n int) { _, _ = fmt.Sscan(peer.Field(info, name), &n); return n }
	peer.Eventually(t, "three replicas wait", func() bool { return strings.Count(p.Must(t, "INFO").Text, "state=wait_bgsave") == 3 })
	before := number(p.Must(t, "INFO").Text, "used_memory")
	const bytes = 8 << 20
	for range 64 { // again and again the same key
		p.Must(t, "SET", "k", strings.Repeat("x", bytes/64))
	}
	info := p.Must(t, "INFO").Text
	buffers, backlog, beyond := number(info, "mem_total_replication_buffers"), number(info, "mem_replication_backlog"), number(info, "mem_not_counted_for_evict")
	if grew := number(info, "used_memory") - before; buffers < bytes || grew < buffers || grew > buffers+bytes/8 {
		t.Errorf("%d bytes are kept for replicas, used_memory grew by %d", buffers, grew)
	}
	if beyond <= 0 || beyond != buffers-backlog {
		t.Errorf("%d bytes are kept for replicas, %d as backlog, %d are not counted", buffers, backlog, beyond)
	}
	p.Must(t, "CONFIG", "SET", "maxmemory", fmt.Sprint(number(info, "used_memory")-bytes/2))
	if v := p.Must(t, "SET", "other", "v"); v.Text != "OK" {
		t.Errorf("a write: %v", v)
	}
	if n := p.Info(t, "connected_slaves"); n != "3" {
		t.Errorf("%s replicas are left", n)
	}
}

// What goes for a full synchronisation is counted as Redis counts it. key-load-delay slows loading, for as long as it is set.
func TestReplicaLetsGo(t *testing.T) {
	p := primary(t)
	p.Must(t, "DEBUG", "POPULATE", "30")
	for _, c := range []struct{ lazy, load, want string }{
		{"no", "disabled", "0"}, {"yes", "disabled", "700"}, {"no", "swapdb", "700"},
	} {
		r := peer.LimitKV(t, "--replica-lazy-flush", c.lazy, "--repl-diskless-load", c.load)
		r.Must(t, "DEBUG", "POPULATE", "700", "own")
		r.Must(t, "CONFIG", "SET", "key-load-delay", "10000000")
		peer.Follow(t, r, p.Addr)
		loads := func() bool { return r.Info(t, "loading") == "1" || r.Info(t, "async_loading") == "1" }
		peer.Eventually(t, "the replica loads", loads)
		if c.load == "disabled" {
			if v := r.Must(t, "GET", "own:0"); !strings.HasPrefix(v.Text, "LOADING") {
				t.Errorf("GET while it loads: %v", v)
			}
		}
		r.Must(t, "CONFIG", "SET", "key-load-delay", "0")
		same(t, p, r)
		if got := r.Info(t, "lazyfreed_objects"); got != c.want {
			t.Errorf("replica-lazy-flush %s, repl-diskless-load %s: lazyfreed_objects is %s", c.lazy, c.load, got)
		}
	}
}

// Who has become a replica is sent the stream alone. What it asks is not answered, and the log says why it goes.
func TestReplicaThatAsks(t *testing.T) {
	p := primary(t)
	for _, c := range []struct{ ask, log string }{
		{"PING", "Replica generated a reply to command 'ping', disconnecting it: "},
		{"XINFO HELP", "Replica generated a reply to command 'xinfo|help', disconnecting it: "},
		{"GET foo", "== CRITICAL == This master is sending an error to its replica: 'ERR Replica can't interact with the keyspace' after processing the command 'get'"},
		{"NOSUCH", "Replica generated a reply to command 'nosuch', disconnecting it: "},
	} {
		r := p.Dial(t)
		for _, line := range []string{"SYNC", c.ask} {
			if err := r.Send(strings.Fields(line)...); err != nil {
				t.Fatal(err)
			}
		}
		p.Says(t, c.log)
	}
}
