package replicas

// The link between a primary and its replica breaks, at every step of a synchronisation, or stands still.

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// newLink is a link to a server of whose connections each passes so many of the server's bytes.
func newLink(t *testing.T, to string) (link *peer.Link, limit *atomic.Int64) {
	limit = &atomic.Int64{}
	limit.Store(math.MaxInt64)
	return peer.BadLink(t, to, func() (int64, bool) { return limit.Load(), false }), limit
}

// However much of a full synchronisation comes through, the next one begins anew, and in the end all is there.
func TestCutAtEveryStep(t *testing.T) {
	for _, diskless := range []string{"yes", "no"} {
		t.Run("diskless "+diskless, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 3))
			p := primary(t, "--repl-diskless-sync", diskless)
			p.Must(t, "EVAL", "for i=1,3000 do redis.call('SET', 'k'..i, redis.sha1hex(i)) end", "0")
			link, limit := newLink(t, p.Addr)
			r := kinds["redis"](t, "--repl-diskless-load", "disabled")
			host, port, _ := net.SplitHostPort(link.Addr())
			// What the primary says first is some 30 bytes, FULLRESYNC is behind it, then there is the file, and the stream.
			for _, most := range []int64{1, 20, 60, 110, 150, 5000, 50_000} {
				limit.Store(most + rng.Int64N(max(most/4, 4)))
				cuts := link.Cuts.Load()
				r.Must(t, "REPLICAOF", "NO", "ONE")
				r.Must(t, "REPLICAOF", host, port)
				peer.Eventually(t, fmt.Sprintf("the link is cut after %d bytes", most), func() bool { p.Must(t, "INCR", "n"); return link.Cuts.Load() > cuts })
			}
			limit.Store(math.MaxInt64)
			p.Must(t, "SET", "last", "1")
			same(t, p, r)
			if n := r.Must(t, "DBSIZE").Text; n != "3002" {
				t.Errorf("%s keys", n)
			}
			peer.Eventually(t, "one replica is left", func() bool { return p.Info(t, "connected_slaves") == "1" })
		})
	}
}

// A stream that breaks again and again is gone on with where it broke, without another snapshot.
func TestCutStream(t *testing.T) {
	p := primary(t, "--repl-backlog-size", "10mb")
	link, limit := newLink(t, p.Addr)
	r := kinds["redis"](t)
	peer.Follow(t, r, link.Addr())
	peer.Eventually(t, "the replica is there", func() bool { return r.Info(t, "master_link_status") == "up" })
	limit.Store(20_000)
	p.Must(t, "CLIENT", "KILL", "TYPE", "replica")
	for i := range 3000 {
		p.Must(t, "MULTI") // of a connection of its own: nothing
		p.Must(t, "SET", fmt.Sprint("k", i), strings.Repeat("v", 30))
	}
	limit.Store(math.MaxInt64)
	same(t, p, r)
	if cuts, full := link.Cuts.Load(), p.Info(t, "sync_full"); cuts < 3 || full != "1" {
		t.Errorf("%d cuts, %s full synchronisations", cuts, full)
	}
}

// A replica that stands still is closed when what waits for it is more than it may be, and the primary serves on with its
// memory bounded; then it comes back.
func TestStoppedReplica(t *testing.T) {
	p := primary(t, "--client-output-buffer-limit", "replica 4mb 0 0", "--repl-backlog-size", "1mb")
	r := kinds["redis"](t)
	peer.Follow(t, r, p.Addr)
	peer.Eventually(t, "the replica is there", func() bool { return strings.Contains(p.Info(t, "slave0"), "state=online") })
	if err := r.Signal(peer.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := true
	defer func() {
		if stopped {
			_ = r.Signal(peer.SIGCONT)
		}
	}()
	c := p.Dial(t)
	value := strings.Repeat("x", 64<<10)
	most := 0
	for i := 0; p.Info(t, "connected_slaves") == "1"; i++ {
		if v, err := c.Do("SET", "k", value); err != nil || v.Text != "OK" {
			t.Fatal(v, err)
		}
		kept := 0
		_, _ = fmt.Sscan(p.Info(t, "mem_total_replication_buffers"), &kept)
		most = max(most, kept)
		if i > 2000 {
			t.Fatalf("the replica is never closed, %d bytes are kept", kept)
		}
	}
	if most < 3<<20 || most > 8<<20 {
		t.Errorf("up to %d bytes were kept", most)
	}
	peer.Eventually(t, "its memory is given back", func() bool {
		p.Must(t, "SET", "k", value)
		kept := 0
		_, _ = fmt.Sscan(p.Info(t, "mem_total_replication_buffers"), &kept)
		return kept < 2<<20
	})
	_ = r.Signal(peer.SIGCONT)
	stopped = false
	p.Must(t, "SET", "k", "end")
	same(t, p, r)
}

// Clients that say what replicas say, and then something else, get an error or are disconnected; the server serves on.
func TestRogueReplicas(t *testing.T) {
	p := primary(t, "--repl-timeout", "1")
	p.Must(t, "SET", "a", "1")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	lines := []string{
		"REPLCONF listening-port 1", "REPLCONF listening-port x", "REPLCONF ip-address 1.2.3.4", "REPLCONF capa eof capa psync2", "REPLCONF capa limitkv",
		"REPLCONF capa", "REPLCONF", "REPLCONF ack 5", "REPLCONF ack x", "REPLCONF ack 99999999999999999999", "REPLCONF ack 7 fack 7", "REPLCONF getack *",
		"REPLCONF version 9.1.2", "REPLCONF version x", "REPLCONF rdb-only 1", "REPLCONF rdb-only 2", "REPLCONF rdb-filter-only functions",
		"REPLCONF rdb-filter-only keys", "REPLCONF nothing 1", "REPLCONF ack -9223372036854775808", "PSYNC ? -1", "PSYNC x x", "PSYNC ? 99999999999999999999",
		"PSYNC 0000000000000000000000000000000000000000 1", "PSYNC ? -1 FAILOVER", "PSYNC a b c d", "SYNC", "GET a", "SET a 2", "MULTI", "EXEC", "DISCARD", "SUBSCRIBE c",
		"MONITOR", "PING", "BLPOP l 0", "WAIT 1 10", "CLIENT TRACKING on", "CLIENT REPLY OFF", "RESET", "HELLO 3", "QUIT", "CLIENT KILL TYPE replica SKIPME no",
		"EVAL return(redis.call('PSYNC','?','-1')) 0", "EVAL return(redis.call('SYNC')) 0", "ROLE", "WATCH a", "CLIENT LIST", "PUBLISH c m", "DEBUG CHANGE-REPL-ID",
	}
	became := 0
	for range 1500 {
		c, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		for range 1 + rng.IntN(8) {
			line := lines[rng.IntN(len(lines))]
			if rng.IntN(3) == 0 {
				line = "PSYNC ? -1"
				became++
			}
			out = peer.AppendCommand(out, strings.Fields(line)...)
		}
		if rng.IntN(10) == 0 {
			out = append(out, "\x00\r\n*x\r\n"...)
		}
		_, _ = c.Write(out)
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(rng.IntN(4)) * time.Millisecond))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	if became == 0 {
		t.Error("nobody said PSYNC")
	}
	peer.Eventually(t, "all of them are gone", func() bool { return p.Info(t, "connected_slaves") == "0" })
	r := kinds["redis"](t)
	peer.Follow(t, r, p.Addr)
	p.Must(t, "SET", "b", "1")
	same(t, p, r)
}
