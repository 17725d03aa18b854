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
		must(t, p, "SET", "a", "b")
		must(t, p, "CONFIG", "SET", "rdb-key-save-delay", minutes)
		wants := func(state string, count int) {
			eventually(t, fmt.Sprintf("a snapshot is made (%s) for %d replicas:\n%s", state, count, must(t, p, "INFO", "replication").Text), func() bool {
				info := must(t, p, "INFO").Text
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
		if !ends(p, 30*time.Second) {
			t.Fatalf("it does not end:\n%s", p.Output())
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
