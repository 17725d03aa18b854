package follow

// Details: places in a stream that no stream comes to, SWAPDB with a key whose time is over, keys that replicas are not told of.

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// emptyFile is a snapshot without keys that was made at an offset.
func emptyFile(offset int64) []byte {
	var b bytes.Buffer
	b.WriteString("REDIS0011")
	for _, fact := range [][2]string{{"repl-stream-db", "0"}, {"repl-id", strings.Repeat("a", 40)}, {"repl-offset", strconv.FormatInt(offset, 10)}} {
		b.WriteByte(0xfa)
		for _, s := range fact {
			b.WriteByte(byte(len(s)))
			b.WriteString(s)
		}
	}
	b.WriteByte(0xff)
	b.Write(make([]byte, 8)) // no checksum
	return b.Bytes()
}

func TestOffsets(t *testing.T) {
	for _, test := range []struct {
		offset int64
		taken  bool
	}{{0, true}, {1 << 40, true}, {1 << 62, true}, {1<<62 + 1, false}, {math.MaxInt64, false}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), emptyFile(test.offset), 0o600); err != nil {
			t.Fatal(err)
		}
		primary := peer.LimitKV(t, "--dir", dir, "--repl-diskless-sync-delay", "0")
		p := primary.Dial(t)
		at := fmt.Sprint(test.offset)
		if got := p.Info(t, "master_repl_offset"); (got == at) != test.taken {
			t.Errorf("a snapshot made at %s: the server begins at %s", at, got)
		}
		if test.taken != !strings.Contains(primary.Output(), "beyond all that can be") {
			t.Errorf("a snapshot made at %s: %s", at, primary.Output())
		}
		replica := peer.LimitKV(t)
		q := replica.Dial(t)
		peer.Join(t, q, primary)
		p.Must(t, "SET", "k", at)
		peer.CaughtUp(t, p, q)
		if v := q.Must(t, "GET", "k"); v.Text != at {
			t.Errorf("a snapshot made at %s: the replica has %v", at, v)
		}
	}
	// A primary that names such a place.
	ln := newListener(t)
	go accept(ln, func(c net.Conn) {
		defer c.Close()
		for lines := bufio.NewScanner(c); lines.Scan(); {
			switch word := strings.ToUpper(lines.Text()); {
			case word == "PING":
				fmt.Fprint(c, "+PONG\r\n")
			case word == "REPLCONF":
				fmt.Fprint(c, "+OK\r\n")
			case word == "PSYNC":
				fmt.Fprintf(c, "+FULLRESYNC %s %d\r\n", strings.Repeat("a", 40), int64(math.MaxInt64))
			}
		}
	})
	s := peer.LimitKV(t)
	c := s.Dial(t)
	c.Must(t, "SET", "mine", "1")
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	c.Must(t, "REPLICAOF", host, port)
	s.Says(t, "Unexpected reply to PSYNC")
	if v := c.Must(t, "GET", "mine"); v.Text != "1" {
		t.Errorf("GET: %v", v)
	}
}

// TestSwapWithWaiter has SWAPDB bring a key whose time is over to where a client waits for one: nobody gets it, and replicas are
// told of its end when a client looks at it, and not before.
func TestSwapWithWaiter(t *testing.T) {
	for _, s := range []*peer.Server{peer.Redis(t, *required), peer.LimitKV(t)} {
		c, waiter, other := s.Dial(t), s.Dial(t), s.Dial(t)
		c.Must(t, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
		c.Must(t, "SELECT", "1")
		c.Must(t, "RPUSH", "k", "hello")
		c.Must(t, "PEXPIRE", "k", "1")
		waiter.Must(t, "SELECT", "9")
		if err := waiter.Send("BRPOP", "k", "0"); err != nil {
			t.Fatal(err)
		}
		peer.Eventually(t, "who waits", func() bool { return c.Info(t, "blocked_clients") == "1" })
		time.Sleep(20 * time.Millisecond) // a look would end it
		c.Must(t, "SWAPDB", "1", "9")
		other.Must(t, "SELECT", "9")
		if v := other.Must(t, "DBSIZE"); v.String() != ":1" {
			t.Errorf("%s: behind SWAPDB there are %v keys", s.Addr, v)
		}
		if v := c.Info(t, "blocked_clients"); v != "1" {
			t.Errorf("%s: %s clients wait", s.Addr, v)
		}
		if v := other.Must(t, "EXISTS", "k"); v.String() != ":0" {
			t.Errorf("%s: EXISTS %v", s.Addr, v)
		}
		if v := other.Must(t, "DBSIZE"); v.String() != ":0" {
			t.Errorf("%s: behind EXISTS there are %v keys", s.Addr, v)
		}
		other.Must(t, "RPUSH", "k", "world")
		if v, err := waiter.Receive(); err != nil || !strings.Contains(v.String(), "world") {
			t.Errorf("%s: who waits got %v, %v", s.Addr, v, err)
		}
	}
}

// TestPopulate has DEBUG POPULATE make keys that no replica is told of.
func TestPopulate(t *testing.T) {
	for _, primary := range []*peer.Server{peer.Redis(t, *required, "--repl-diskless-sync-delay", "0"), peer.LimitKV(t, "--repl-diskless-sync-delay", "0")} {
		p, q := primary.Dial(t), peer.LimitKV(t).Dial(t)
		peer.Join(t, q, primary)
		p.Must(t, "DEBUG", "POPULATE", "10")
		p.Must(t, "SET", "a", "1")
		peer.CaughtUp(t, p, q)
		if at, of := q.Must(t, "DBSIZE").String(), p.Must(t, "DBSIZE").String(); at != ":1" || of != ":11" {
			t.Errorf("%s has %s keys, its replica %s", primary.Addr, of, at)
		}
	}
}

// TestPeekOnReplica has a replica, which takes no writes, tell what its limiters would grant.
func TestPeekOnReplica(t *testing.T) {
	primary := peer.LimitKV(t, "--repl-diskless-sync-delay", "0")
	p, q := primary.Dial(t), peer.LimitKV(t).Dial(t)
	peer.Join(t, q, primary)
	for _, args := range [][]string{
		{"RL.SET", "a", "TOTAL", "5"}, {"RL.ACQUIRE", "a", "3"}, {"RL.SET", "b", "TOTAL", "9"}, {"RL.ACQUIRE", "b", "1", "ID", "x"},
		{"HSET", "h", "rate", "5", "interval", "86400000", "type", "0"}, {"RL.ACQUIRE", "h", "2"}, {"DQ.ADD", "queue", "ID", "x", "payload"},
	} {
		if v := p.Must(t, args...); v.Kind == '-' {
			t.Fatal(args, v)
		}
	}
	peer.CaughtUp(t, p, q)
	for _, args := range [][]string{
		{"RL.ACQUIRE", "a", "1", "PEEK"}, {"RL.ACQUIRE", "a", "3", "PEEK"}, {"RL.ACQUIRE", "b", "9", "PEEK"}, {"RL.ACQUIRE", "new", "PEEK", "FIXED", "5", "1000"},
		{"RL.ACQUIRE", "new", "PEEK"}, {"RL.MACQUIRE", "2", "a", "1", "b", "9", "PEEK"}, {"DQ.PEEK", "queue"}, {"DQ.PEEK", "queue", "MATCH", "*"},
		{"EVAL_RO", "return redis.call('RL.ACQUIRE', KEYS[1], 3, 'PEEK')", "1", "a"}, {"EVAL", "return redis.call('RL.ACQUIRE', KEYS[1], 3, 'PEEK')", "1", "a"},
	} {
		if got, want := q.Must(t, args...).String(), p.Must(t, args...).String(); got != want || strings.Contains(got, "READONLY") {
			t.Errorf("%q on the replica: %s, on its primary %s", args, got, want)
		}
	}
	if v := q.Must(t, "RL.ACQUIRE", "h", "1", "PEEK"); !strings.HasPrefix(v.String(), "[:0, :5, :3, ") {
		t.Errorf("a limiter of Redisson's: %v", v)
	}
	q.Must(t, "MULTI")
	q.Must(t, "RL.ACQUIRE", "a", "1", "PEEK")
	if v := q.Must(t, "EXEC"); v.Kind != '*' {
		t.Errorf("EXEC of PEEK: %v", v)
	}
	for _, args := range [][]string{{"RL.ACQUIRE", "a", "1"}, {"RL.ACQUIRE", "PEEK", "1"}, {"RL.MACQUIRE", "1", "a", "1"}} {
		if v := q.Must(t, args...); !strings.HasPrefix(v.Text, "READONLY") {
			t.Errorf("%q on the replica: %v", args, v)
		}
	}
	equal(t, p, q)
}

// TestLongArguments has a replica whose clients may send a megabyte follow a primary whose clients may send more: what was
// allowed there is applied, be it sent, grown, or unpacked.
func TestLongArguments(t *testing.T) {
	for _, from := range sources() {
		t.Run(from.name, func(t *testing.T) {
			primary := from.start(t, "--repl-diskless-sync-delay", "0")
			replica := peer.LimitKV(t, "--proto-max-bulk-len", "1mb")
			p, q := primary.Dial(t), replica.Dial(t)
			peer.Join(t, q, primary)
			long := strings.Repeat("x", 1<<20)
			for _, size := range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, 4 << 20, 4<<20 + 1, 30 << 20} {
				p.Must(t, "SET", fmt.Sprint(size), strings.Repeat("x", size))
			}
			for _, args := range [][]string{
				{"APPEND", "appended", long}, {"APPEND", "appended", "y"}, {"SETRANGE", "range", "1048575", "z"}, {"SETRANGE", "range", "1048576", "z"},
				{"SETBIT", "bit", "8388607", "1"}, {"SETBIT", "bit", "8388608", "1"}, {"BITFIELD", "field", "SET", "u8", "#1048576", "7"},
				{"RESTORE", "unpacked", "0", p.Must(t, "DUMP", "4194305").Text},
				{"FUNCTION", "LOAD", "#!lua name=library\n--" + long + "\nredis.register_function{function_name='long', callback=function() return 7 end, flags={'no-writes'}}"},
				{"FUNCTION", "RESTORE", "", "FLUSH"},
			} {
				if args[0] == "FUNCTION" && args[1] == "RESTORE" {
					args[2] = p.Must(t, "FUNCTION", "DUMP").Text
				}
				if v := p.Must(t, args...); v.Kind == '-' {
					t.Fatalf("the primary: %.60q: %v", args, v)
				}
			}
			peer.CaughtUp(t, p, q)
			for key, want := range map[string]string{
				"1048575": ":1048575", "1048576": ":1048576", "1048577": ":1048577", "4194304": ":4194304", "4194305": ":4194305", "31457280": ":31457280",
				"appended": ":1048577", "range": ":1048577", "bit": ":1048577", "field": ":1048577", "unpacked": ":4194305",
			} {
				if v := q.Must(t, "STRLEN", key); v.String() != want {
					t.Errorf("%s is %v bytes, want %s", key, v, want)
				}
			}
			if v := q.Must(t, "FCALL_RO", "long", "0"); v.String() != ":7" {
				t.Errorf("the function: %v", v)
			}
			if p.Must(t, "DEBUG", "DIGEST").Text != q.Must(t, "DEBUG", "DIGEST").Text {
				t.Error("the digests differ")
			}
			if full, partial := p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok"); full != "1" || partial != "0" {
				t.Errorf("%s full synchronisations and %s partial ones: the link broke\n%s", full, partial, replica.Output())
			}
			// Its own clients may send as much as before.
			q.Must(t, "REPLICAOF", "NO", "ONE")
			for _, args := range [][]string{{"APPEND", "1048576", "x"}, {"SETRANGE", "1048576", "1048576", "x"}, {"SETBIT", "1048576", "8388608", "1"}} {
				if v := q.Must(t, args...); v.Kind != '-' {
					t.Errorf("%v: %v", args, v)
				}
			}
		})
	}
}

// TestPayloadsOfValkey has Valkey's clients restore values that Valkey has dumped: a replica takes them, its own clients may not.
func TestPayloadsOfValkey(t *testing.T) {
	bin := os.Getenv("VALKEY_SERVER")
	if bin == "" {
		t.Skip("VALKEY_SERVER names no server")
	}
	primary, replica := peer.Like(t, "valkey", bin, "--repl-diskless-sync-delay", "0"), peer.LimitKV(t)
	p, q := primary.Dial(t), replica.Dial(t)
	peer.Join(t, q, primary)
	p.Must(t, "HSET", "hash", "a", "1", "b", "2")
	p.Must(t, "HPEXPIREAT", "hash", "4000000000000", "FIELDS", "1", "a")
	p.Must(t, "ZADD", "zset", "1", "a", "2.5", "b")
	p.Must(t, "FUNCTION", "LOAD", "#!lua name=library\nredis.register_function{function_name='seven', callback=function() return 7 end, flags={'no-writes'}}")
	for _, key := range []string{"hash", "zset"} {
		if v := p.Must(t, "RESTORE", "restored:"+key, "0", p.Must(t, "DUMP", key).Text); v.Text != "OK" {
			t.Fatal(v)
		}
	}
	functions := p.Must(t, "FUNCTION", "DUMP").Text
	if v := p.Must(t, "FUNCTION", "RESTORE", functions, "REPLACE"); v.Text != "OK" {
		t.Fatal(v)
	}
	peer.CaughtUp(t, p, q)
	equal(t, p, q)
	p.Must(t, "SELECT", "0")
	q.Must(t, "SELECT", "0")
	if v := q.Must(t, "HPEXPIRETIME", "restored:hash", "FIELDS", "2", "a", "b"); v.String() != "[:4000000000000, :-1]" {
		t.Errorf("deadlines: %v", v)
	}
	if out := replica.Output(); strings.Contains(out, "CRITICAL") {
		t.Error(out)
	}
	q.Must(t, "REPLICAOF", "NO", "ONE")
	const refused = "-ERR DUMP payload version or checksum are wrong"
	if v := q.Must(t, "RESTORE", "own", "0", p.Must(t, "DUMP", "hash").Text); v.String() != refused {
		t.Error(v)
	}
	if v := q.Must(t, "FUNCTION", "RESTORE", functions); v.String() != refused {
		t.Error(v)
	}
}
