package replicas

// limitkv and Redis as primaries are told the same, by clients and by what says that it is a replica, and reply the same.

import (
	"regexp"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// ownWords are the parts of replies that belong to one server or moment.
var ownWords = regexp.MustCompile(`\b(id|addr|laddr|fd|age|idle|qbuf|qbuf-free|argv-mem|rbs|rbp|tot-mem|tot-net-in|tot-net-out|tot-cmds|omem|oll|obl|io-thread|lib-name|lib-ver|events)=\S*` +
	`|(master_replid\d?):\w+|[0-9a-f]{40}|port=\d+|lag=\d+|("master"), :\d+|(offset)=\d+|(repl_backlog_[a-z_]+|[a-z_]*repl_offset):\d+`)

// said is what a step has a connection say. A connection whose name is new is opened.
type said struct {
	conn string
	args []string
}

func step(conn, line string) said { return said{conn, strings.Fields(line)} }

// TestSaysAsRedis is the whole of what REPLCONF, PSYNC, FAILOVER and the others reply, right and wrong.
func TestSaysAsRedis(t *testing.T) {
	servers := []*peer.Server{peer.Redis(t, inCI, "--repl-diskless-sync-delay", "0"), primary(t)}
	const id = "0123456789012345678901234567890123456789"
	steps := []said{
		{"a", []string{"REPLCONF", "rdb-filter-only", `"functions"`}}, {"a", []string{"REPLCONF", "rdb-filter-only", `"functions`}},
		{"a", []string{"REPLCONF", "rdb-filter-only", ""}}, {"a", []string{"REPLCONF", "Some\r\nthing", "x"}}, {"a", []string{"REPLCONF", "", ""}},
		{"a", []string{"REPLCONF", "ip-address", strings.Repeat("x", 254)}}, {"a", []string{"REPLCONF", "ip-address", strings.Repeat("x", 255)}},
		{"a", []string{"REPLCONF", "ip-address", strings.Repeat("x", 256)}}, {"a", []string{"REPLCONF", "ip-address", strings.Repeat("x", 1_000_000)}},
		{"a", []string{"REPLICAOF", "127.0.0.1", ""}}, {"a", []string{"PSYNC", "", ""}},
	}
	for _, line := range []string{
		"REPLCONF", "REPLCONF x", "REPLCONF Nothing 1", "REPLCONF listening-port", "REPLCONF listening-port x", "REPLCONF LISTENING-PORT 1 x 1",
		"REPLCONF listening-port -1", "REPLCONF listening-port 99999999", "REPLCONF listening-port 9223372036854775807", "REPLCONF listening-port 9223372036854775808",
		"REPLCONF capa eof capa psync2 capa other", "REPLCONF capa", "REPLCONF rdb-only x", "REPLCONF rdb-only 2", "REPLCONF rdb-only -1", "REPLCONF rdb-only 1 rdb-only 0",
		"REPLCONF rdb-filter-only keys", "REPLCONF rdb-filter-only Functions", "REPLCONF listening-port 1 capa eof nothing 1",
		"PSYNC", "PSYNC x", "SYNC x", "PSYNC ? x", "PSYNC " + id + " 99999999999999999999", "PSYNC " + id + " 1 FAILOVER", "PSYNC ? -1 failover",
		"REPLICAOF", "REPLICAOF no", "REPLICAOF no two", "REPLICAOF 127.0.0.1 -1", "REPLICAOF 127.0.0.1 65536", "REPLICAOF 127.0.0.1 x", "REPLICAOF 127.0.0.1 +1", "REPLICAOF 127.0.0.1 01",
		"REPLICAOF 127.0.0.1 1.0", "REPLICAOF No One", "SLAVEOF no one",
		"FAILOVER", "FAILOVER x", "FAILOVER ABORT", "FAILOVER ABORT x", "FAILOVER TO", "FAILOVER TO a", "FAILOVER TO a x", "FAILOVER TO a 1", "FAILOVER TO a 1 TO b 2", "FAILOVER TIMEOUT",
		"FAILOVER TIMEOUT 0", "FAILOVER TIMEOUT -1", "FAILOVER TIMEOUT x", "FAILOVER TIMEOUT 1 TIMEOUT 2", "FAILOVER FORCE", "FAILOVER FORCE FORCE", "FAILOVER TO a 1 FORCE", "FAILOVER TO a 1 FORCE TIMEOUT 1",
		"FAILOVER TO a 99999999999999999999", "FAILOVER TO a -1",
		"WAIT", "WAIT x 1", "WAIT 1 x", "WAIT 1 -1", "WAIT 0 0", "WAIT -1 0", "WAIT 0 9223372036854775807", "WAIT 9223372036854775807 1", "WAIT 9223372036854775808 1",
		"WAITAOF", "WAITAOF 0 0 0", "WAITAOF 2 0 0", "WAITAOF -1 0 0", "WAITAOF x 0 0", "WAITAOF 0 -1 0", "WAITAOF 0 x 0", "WAITAOF 0 0 -1", "WAITAOF 0 0 x", "WAITAOF 1 0 0",
		"WAITAOF 0 4611686018427387904 1", "WAITAOF 0 4611686018427387905 1", "WAITAOF 0 9223372036854775807 1", "WAITAOF 0 9223372036854775808 1", "WAITAOF 0 0 9223372036854775807",
		"ROLE", "ROLE x", "INFO replication",
		"MULTI", "PSYNC ? -1", "EXEC", "MULTI", "SYNC", "EXEC", "MULTI", "REPLCONF listening-port 1", "EXEC", "MULTI", "REPLICAOF no one", "ROLE", "FAILOVER", "EXEC",
		"MULTI", "WAIT 1 0", "WAITAOF 0 1 0", "EXEC",
		"EVAL return(redis.call('SYNC')) 0", "EVAL return(redis.pcall('PSYNC','?','-1')) 0", "EVAL return(redis.pcall('REPLCONF','ack','1')) 0", "EVAL return(redis.pcall('REPLICAOF','no','one')) 0",
		"EVAL return(redis.pcall('ROLE')) 0", "EVAL return(redis.pcall('FAILOVER')) 0", "EVAL return(redis.pcall('WAIT','1','0')) 0", "EVAL return(redis.pcall('WAITAOF','0','1','0')) 0",
	} {
		steps = append(steps, step("a", line))
	}
	// Now there is a replica: b reads what a primary sends to it, which is none of the replies that are compared.
	steps = append(steps,
		step("b", "REPLCONF listening-port 7 ip-address nowhere capa psync2"), step("b", "PSYNC ? -1"),
		step("a", "INFO replication"), step("a", "ROLE"), step("a", "CLIENT LIST TYPE replica"),
		step("a", "FAILOVER TO a 7"), step("a", "FAILOVER TO nowhere 8"), step("a", "FAILOVER FORCE"), step("a", "FAILOVER FORCE TO nowhere 7"), step("a", "FAILOVER FORCE TIMEOUT 5"),
		step("a", "SET k v"), step("a", "WAIT 1 10"), step("a", "WAITAOF 0 1 10"), step("a", "FAILOVER TIMEOUT 100000"), step("a", "FAILOVER"), step("a", "INFO replication"),
		step("a", "REPLICAOF 127.0.0.1 1"), step("a", "REPLICAOF NO ONE"), step("c", "SYNC"), step("c", "PSYNC ? -1"), step("a", "FAILOVER ABORT"), step("a", "INFO replication"),
		step("a", "CONFIG SET min-replicas-to-write 1"), step("a", "INFO replication"), step("a", "SET k v"), step("a", "CONFIG SET min-replicas-to-write 2"), step("a", "SET k v"),
		step("a", "EVAL return(redis.pcall('SET',KEYS[1],1)) 1 k"), step("a", "EVAL return(redis.call('SET',KEYS[1],1)) 1 k"), step("a", "EVAL return(1) 0"),
		step("a", "MULTI"), step("a", "SET k v"), step("a", "EXEC"), step("a", "MULTI"), step("a", "GET k"), step("a", "EXEC"), step("a", "FLUSHALL"), step("a", "PUBLISH c m"),
		step("a", "CONFIG SET min-replicas-max-lag 0"), step("a", "SET k v"), step("a", "INFO replication"), step("a", "CONFIG SET min-replicas-to-write 0"),
	)
	conns := make([]map[string]*peer.Conn, len(servers))
	replies := make([][]string, len(servers))
	for i, s := range servers {
		conns[i] = map[string]*peer.Conn{}
		for _, st := range steps {
			c := conns[i][st.conn]
			if c == nil {
				c = s.Dial(t)
				conns[i][st.conn] = c
			}
			v, err := c.Do(st.args...)
			if err != nil {
				t.Fatalf("%s: %.200q: %v", s.Name, st.args, err)
			}
			text := v.String()
			if st.args[0] == "PSYNC" && v.Kind == '+' {
				text = strings.Fields(text)[0]
				peer.Eventually(t, "the replica is there", func() bool { return strings.Contains(s.Info(t, "slave0"), "state=online") })
			}
			replies[i] = append(replies[i], ownWords.ReplaceAllString(text, "$1$2$3$4$5"))
		}
	}
	for n, st := range steps {
		if want, got := replies[0][n], replies[1][n]; want != got {
			t.Errorf("step %d, %.200q:\nwant %s\ngot  %s", n, st.args, want, got)
		}
	}
	// What a replica says after that is no business of a primary's replica: it is not told, and its connection ends.
	for i, s := range servers {
		if err := conns[i]["b"].Send("REPLICAOF", "127.0.0.1", "1"); err != nil {
			t.Fatal(err)
		}
		if !conns[i]["b"].Closed(peer.ReplyTimeout) {
			t.Errorf("%s: the connection of a replica that asks for REPLICAOF stays open", s.Name)
		}
		if got := s.Info(t, "role"); got != "master" {
			t.Errorf("%s: a replica made it a %s", s.Name, got)
		}
	}
}
