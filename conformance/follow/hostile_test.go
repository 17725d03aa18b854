package follow

// Primaries that are none: what a program says that claims to be one. A replica goes on serving what it has, or what it was
// sent, tries again, and follows a true primary afterwards. Redis is told the same beside limitkv.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

const (
	streamID = "0123456789012345678901234567890123456789"
	noKeys   = "REDIS0011\xff\x00\x00\x00\x00\x00\x00\x00\x00" // no keys, no checksum
)

// sends is what a false primary says behind a file without keys, in the stream.
func sends(stream string) string {
	return fmt.Sprintf("+FULLRESYNC %s 0\r\n$%d\r\n%s%s", streamID, len(noKeys), noKeys, stream)
}

func wire(lines ...string) string {
	var b []byte
	for _, line := range lines {
		b = peer.AppendCommand(b, strings.Fields(line)...)
	}
	return string(b)
}

// falsePrimary answers a replica's greeting as a primary does, and PSYNC by what it is told to say. It returns its port.
func falsePrimary(t *testing.T, answer string, hangsUp bool, asked *atomic.Int64) string {
	ln := newListener(t)
	go accept(ln, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			words, err := command(in)
			if err != nil {
				return
			}
			switch strings.ToUpper(words[0]) {
			case "PING":
				_, err = io.WriteString(c, "+PONG\r\n")
			case "PSYNC":
				asked.Add(1)
				if _, err = io.WriteString(c, answer); hangsUp {
					return
				}
			case "REPLCONF":
				if len(words) < 2 || !strings.EqualFold(words[1], "ACK") {
					_, err = io.WriteString(c, "+OK\r\n")
				}
			default:
				_, err = io.WriteString(c, "-ERR unknown\r\n")
			}
			if err != nil {
				return
			}
		}
	})
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// command reads what a replica says: a command, or an empty line by which it stays alive.
func command(in *bufio.Reader) (words []string, err error) {
	line := func() (string, error) { s, err := in.ReadString('\n'); return strings.TrimSpace(s), err }
	head := ""
	for head == "" && err == nil {
		head, err = line()
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(head, "*"))
	for range n {
		if _, err = line(); err != nil { // its length: what replicas say has no line ends inside
			break
		}
		var word string
		word, err = line()
		words = append(words, word)
	}
	if len(words) == 0 && err == nil {
		words = []string{""}
	}
	return words, err
}

// TestFalsePrimaries has limitkv and Redis follow programs that answer PSYNC by what no primary says.
func TestFalsePrimaries(t *testing.T) {
	full := "+FULLRESYNC " + streamID + " 0\r\n"
	mark := "$EOF:" + streamID + "\r\n"
	for _, says := range []struct {
		name, answer string
		hangsUp      bool
		loads        bool // the replica takes over what it was sent: nothing
		alone        bool // Redis 8.0.6 ends, or never tries again
	}{
		{"hangs up", "", true, false, false},
		{"half a line", "+FULLRES", true, false, false},
		{"a line without an end", "+FULLRESYNC " + strings.Repeat("x", 1<<20), false, false, false},
		{"no id", "+FULLRESYNC\r\n", true, false, false},
		{"a short id", "+FULLRESYNC abc 1\r\n", true, false, false},
		{"an offset below zero", "+FULLRESYNC " + streamID + " -5\r\n", true, false, false},
		{"an offset beyond all", "+FULLRESYNC " + streamID + " 9223372036854775807\r\n", true, false, false},
		{"continues what never was", "+CONTINUE\r\n", true, false, true},
		{"continues by a name", "+CONTINUE " + streamID + "\r\n", true, false, true},
		{"an error", "-ERR no\r\n", false, false, true},
		{"an integer", ":1\r\n", true, false, true},
		{"an array without an end", strings.Repeat("*1\r\n", 1<<18), true, false, true},
		{"zeros", strings.Repeat("\x00", 1<<20), true, false, true},
		{"no file", full, true, false, false},
		{"an error for a file", full + "-ERR\r\n", true, false, false},
		{"no length", full + "$x\r\n", true, false, true},
		{"a length below zero", full + "$-5\r\nabc", true, false, true},
		{"a length beyond all", full + "$9223372036854775807\r\nREDIS0011", true, false, false},
		{"a length beyond numbers", full + "$99999999999999999999\r\nREDIS0011", true, false, true},
		{"half a file", full + "$100\r\nREDIS0011", true, false, false},
		{"a short mark", full + "$EOF:abc\r\nREDIS0011", true, false, true},
		{"no mark behind a file", full + mark + "REDIS0011", true, false, false},
		{"half a mark", full + mark + noKeys + streamID[:39], true, false, false},
		{"no file before a mark", full + mark + streamID, false, true, true},
		{"something else for a file", full + "$20\r\n" + strings.Repeat("x", 20), true, true, true},
		{"a damaged file", full + "$20\r\nREDIS0011\xfe\x00\xfb\x99\x99\x99\x99\x99\x99\x99\x99", true, true, true},
		{"a stream of zeros", sends(strings.Repeat("\x00", 1<<20)), false, true, false},
		{"a line without an end in the stream", sends(strings.Repeat("x", 10<<20)), false, true, false},
		{"more arguments than there can be", sends("*2147483648\r\n"), false, true, false},
		{"a number of arguments beyond numbers", sends("*99999999999999999999\r\n"), false, true, false},
		{"an argument of no length", sends("*1\r\n$\r\n"), false, true, false},
		{"an argument below zero", sends("*1\r\n$-1\r\n"), false, true, false},
		{"an argument beyond numbers", sends("*1\r\n$99999999999999999999\r\n"), false, true, false},
		{"a large argument that does not come", sends("*2\r\n$4\r\nPING\r\n$536870912\r\nx"), false, true, false},
		{"the longest argument, that does not come", sends("*2\r\n$4\r\nPING\r\n$4294967200\r\n" + strings.Repeat("x", 5<<20)), false, true, true},
		{"a longer one", sends("*2\r\n$4\r\nPING\r\n$4294967296\r\nx"), false, true, true},
		{"strings beyond the longest", sends(wire("SETRANGE k 4294967295 x", "SETRANGE k 9223372036854775806 x", "SETRANGE k 9223372036854775807 x", "SETBIT k 34359738360 1",
			"SETBIT k 9223372036854775807 1", "BITFIELD k SET u8 #4294967295 1", "BITFIELD k SET u8 9223372036854775807 1")), false, true, true},
		{"half a command", sends("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nab"), true, true, false},
		{"half a transaction", sends(wire("MULTI", "SET half 1")), true, true, false},
		{"the end of no transaction", sends(wire("EXEC", "DISCARD", "MULTI", "MULTI", "WATCH a", "EXEC")), false, true, false},
		{"databases that there are not", sends(wire("SELECT 16", "SELECT -1", "SELECT 99999999999999999999", "SELECT x", "SELECT", "SET k v")), false, true, false},
		{"what is for clients", sends(wire("BLPOP l 0", "SUBSCRIBE c", "PSUBSCRIBE *", "MONITOR", "WAIT 5 0", "QUIT", "RESET", "HELLO 3", "AUTH a b", "CLIENT REPLY OFF",
			"CLIENT TRACKING on", "CLIENT PAUSE 1", "XREAD BLOCK 0 STREAMS s $", "GET k", "KEYS *", "NOSUCH", "SET", "INFO", "DEBUG OBJECT k")), false, true, true},
		{"what is for replicas", sends(wire("PSYNC ? -1", "SYNC", "REPLCONF", "REPLCONF x", "REPLCONF ACK 1", "REPLCONF GETACK", "REPLCONF GETACK * x", "REPLCONF listening-port x",
			"FAILOVER", "ROLE", "PSYNC "+streamID+" 1 FAILOVER")), false, true, true},
		{"a million databases", sends(strings.Repeat(wire("SELECT 1", "SELECT 0"), 500_000)), false, true, false},
	} {
		t.Run(says.name, func(t *testing.T) {
			t.Parallel()
			servers := []*peer.Server{peer.LimitKV(t, "--repl-timeout", "3")}
			if !says.alone {
				servers = append(servers, peer.Redis(t, *required, "--repl-timeout", "3"))
			}
			for _, s := range servers {
				var asked atomic.Int64
				port := falsePrimary(t, says.answer, says.hangsUp, &asked)
				c := s.Dial(t)
				c.Must(t, "SET", "mine", "1")
				c.Must(t, "REPLICAOF", "127.0.0.1", port)
				peer.Eventually(t, s.Name+": PSYNC", func() bool { return asked.Load() > 0 })
				if says.hangsUp {
					peer.Eventually(t, s.Name+": another PSYNC", func() bool { return asked.Load() > 1 })
				}
				want := "1"
				if says.loads {
					want = "0"
				}
				peer.Eventually(t, s.Name+": what it has", func() bool { return c.Must(t, "EXISTS", "mine").Text == want })
				if c.Must(t, "EXISTS", "half").Text != "0" {
					t.Error("half of a transaction is there")
				}
				if size := resident(t, s.Pid()); size > 300<<20 {
					t.Errorf("%s takes %d MB", s.Name, size>>20)
				}
				if !s.Alive() {
					t.Fatalf("%s has ended:\n%s", s.Name, s.Output())
				}
			}
			s := servers[0]
			primary := peer.LimitKV(t, "--repl-diskless-sync-delay", "0")
			p, c := primary.Dial(t), s.Dial(t)
			p.Must(t, "SET", "true", "1")
			host, port, _ := net.SplitHostPort(primary.Addr)
			peer.Eventually(t, "REPLICAOF", func() bool { return c.Must(t, "REPLICAOF", host, port).Text == "OK" }) // it may be loading
			peer.Linked(t, c)
			peer.CaughtUp(t, p, c)
			equal(t, p, c)
			c.Must(t, "REPLICAOF", "NO", "ONE")
			if v := c.Must(t, "SET", "k", "v"); v.Text != "OK" {
				t.Error(v)
			}
		})
	}
}

// resident is how many bytes of memory a process has.
func resident(t *testing.T, pid int) (bytes int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}

// TestCircle has servers follow themselves and each other: nobody has anything to follow, and all serve what they have.
func TestCircle(t *testing.T) {
	for _, start := range []func() *peer.Server{
		func() *peer.Server { return peer.LimitKV(t, "--repl-diskless-sync-delay", "0") },
		func() *peer.Server { return peer.Redis(t, *required, "--repl-diskless-sync-delay", "0") },
	} {
		var conns []*peer.Conn
		var all []*peer.Server
		for range 3 {
			s := start()
			all, conns = append(all, s), append(conns, s.Dial(t))
		}
		for i, c := range conns {
			c.Must(t, "SET", "mine", fmt.Sprint(i))
		}
		for _, ring := range []int{1, 2, 3} {
			for i := range ring {
				host, port, _ := strings.Cut(all[(i+1)%ring].Addr, ":")
				conns[i].Must(t, "REPLICAOF", host, port)
			}
			time.Sleep(1500 * time.Millisecond)
			for i := range ring {
				if got := conns[i].Info(t, "role") + " " + conns[i].Info(t, "master_link_status"); ring == 1 && got != "slave down" {
					t.Errorf("%s that follows itself: %s", all[i].Name, got)
				}
				conns[i].Must(t, "GET", "mine")
			}
			for i := range ring {
				if v := conns[i].Must(t, "REPLICAOF", "NO", "ONE"); v.Text != "OK" {
					t.Error(v)
				}
				if v := conns[i].Must(t, "SET", "mine", fmt.Sprint(i)); v.Text != "OK" {
					t.Error(v)
				}
			}
		}
		peer.Join(t, conns[1], all[0])
		peer.Join(t, conns[2], all[1])
		peer.CaughtUp(t, conns[0], conns[1])
		peer.CaughtUp(t, conns[1], conns[2])
		equal(t, conns[0], conns[2])
	}
}
