package resp

// The protocol as Redis speaks it: bytes sent, bytes received, and whether the connection stays open, recorded from
// Redis 8.0.6 in testdata/protocol.txt. To record again: go test ./resp -run Recorded -record 127.0.0.1:6379

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var record = flag.String("record", "", "address of a Redis to record the expected replies from")

// exchanges are the bytes to send; those that start with "auth:" go to a server that needs a password.
func exchanges() []string {
	eval := func(args string) string { return "EVAL 'return ARGV' 0 " + args + "\r\n" }
	list := []string{
		"PING\r\n", "PING\n", "ping\r\n", "  PING  \r\n", "\r\n\r\nPING\r\n", "\n\nPING\n", " \t\r\nPING\r\n", "PING\r\r\n", "PIN", "PING",
		"\rPING\r\n", "P\rING\r\n", "ECHO a\rPING\r\n", "*0\r\nPING\r\n", "*-1\r\nPING\r\n", "*-10\r\n*1\r\n$4\r\nPING\r\n",
		"*1\r\n$4\r\nPING\r\n", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
		"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\nPING\r\n", "*1\r$4\r\nPING\r\n", "*1\rx$4\rxPINGxxPING\r\n", "*1\r\n$4\r\nPINGxxPING\r\n",
		"*1\n$4\nPING\n", "*2\r\n$4\r\nECHO\r\n$1\r\nxPING\r\nPING\r\n",
		"*\r\n", "* 1\r\n$4\r\nPING\r\n", "*+1\r\n$4\r\nPING\r\n", "*01\r\n$4\r\nPING\r\n", "*1 \r\n", "*x\r\n", "*1x\r\n", "*-\r\n", "*-0\r\n",
		"*3000000000\r\n", "*2147483648\r\n", "*2147483647\r\n", "*1048577\r\n$4\r\nPING\r\n", "*-9223372036854775808\r\nPING\r\n",
		"*9223372036854775808\r\n", "*99999999999999999999\r\n", "*1\r\n\r\n", "*1\r\n\n\r\n",
		"*1\r\nfoo\r\n", "*1\r\n*1\r\n", "*1\r\n:4\r\n", "*1\r\n\x80\r\n", "*1\r\nfoo", "*1\r\n$", "*1\r\n$\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$-0\r\n", "*1\r\n$04\r\n", "*1\r\n$+4\r\n", "*1\r\n$ 4\r\n", "*1\r\n$4 \r\n", "*1\r\n$2000000000\r\n", "*1\r\n$536870913\r\n", "*1\r\n$536870912\r\n",
		"*1\r\n$99999999999999999999\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", "PING\r\n*1\r\nfoo\r\n", "*1\r\nfoo\r\nPING\r\n",
		"$4\r\nPING\r\n", "\x00PING\r\n", "PI\x00NG\r\n", "ECHO a\x00b\r\n", "*\x001\r\n$4\r\nPING\r\n", "*1\x00\r\n", "*1\r\n$4\x00\r\nPING\r\n", "*1\r\n\x00$4\r\n",
		"ECHO \x80\xff\r\n",
		"set \"\"\"test-key\"\"\" test-value\r\nping\r\n",
		eval(`a b  c`), eval(`"a b" 'c d'`), eval(`"a\x41\n\r\t\b\a\\\"\q\x4g\x"`), eval(`'a\x41\n\'\"\\'`), eval(`a"b c"`), eval(`"a"b`),
		eval(`'a'b`), eval(`"a"'b'`), eval(`"abc`), eval(`'abc`), eval(`"abc\"`), eval(`'abc\'`), eval(`"abc\`), eval(`""`), eval(`'' ""`),
		eval(`a'b' c"d"`), eval(`a\nb`), eval(`"a"	'b'`), eval("a\vb \v c"), eval("\"a\"\vb"), eval("a\fb"), eval(`"\x4"`), eval(`"\xAf\xfA"`), eval(`\"a`),
		eval(strings.Repeat("x ", 1000)), "ECHO " + strings.Repeat("x", 60000) + "\r\n",
		strings.Repeat("A", 65536), strings.Repeat("A", 65537), "*" + strings.Repeat("1", 65536),
		"*1\r\n$" + strings.Repeat("1", 65536), "*1\r\n" + strings.Repeat("1", 65535), "\x00" + strings.Repeat("A\n", 33000),
		"*\x00" + strings.Repeat("A\r\n", 23000), "*2\r\n$\x00" + strings.Repeat("A\r\n", 23000), strings.Repeat("\r\n", 40000) + "PING\r\n",
		"*3\r\n$4\r\nEVAL\r\n$11\r\nreturn ARGV\r\n$1\r\n0\r\n",
		fmt.Sprintf("*1003\r\n$4\r\nEVAL\r\n$11\r\nreturn ARGV\r\n$1\r\n0\r\n%s", strings.Repeat("$1\r\na\r\n", 1000)),
		"*2\r\n$4\r\nECHO\r\n$40000\r\n" + strings.Repeat("b", 40000) + "\r\n*1\r\n$4\r\nPING\r\n",
		"QUIT\r\nPING\r\n", "*1\r\n$4\r\nQUIT\r\n*1\r\nfoo\r\n",
	}
	for _, s := range []string{"PING\r\n", "*11\r\n", "*10\r\n$4\r\nPING\r\n", "*1\r\n$16385\r\n", "*1\r\n$16384\r\n", "*2147483648\r\n", "*1\r\n$536870913\r\n",
		"*2\r\n$4\r\nAUTH\r\n$3\r\nfoo\r\n*11\r\n", "AUTH foo\r\n*1\r\n$16385\r\n", "*1\r\n$4\r\nPING\r\n*11\r\n", "AUTH foo\r\nPING\r\n"} {
		list = append(list, "auth:"+s)
	}
	return list
}

const exchangesFile = "testdata/protocol.txt"

// recordExchanges asks a Redis.
func recordExchanges(t *testing.T) {
	control := dial(t, "tcp", *record)
	var out strings.Builder
	for _, s := range exchanges() {
		input, auth := strings.CutPrefix(s, "auth:")
		if auth {
			control.send("CONFIG SET requirepass foo\r\n")
			control.expect("+OK\r\n")
		}
		nc, err := net.Dial("tcp", *record)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = nc.Write([]byte(input)) }()
		var got []byte
		state := "open"
		for {
			_ = nc.SetReadDeadline(time.Now().Add(80 * time.Millisecond))
			buf := make([]byte, 1<<16)
			n, err := nc.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				var ne net.Error
				if !errors.As(err, &ne) || !ne.Timeout() {
					state = "closed"
				}
				break
			}
		}
		nc.Close()
		if auth {
			control.send("CONFIG SET requirepass \"\"\r\n")
			control.expect("+OK\r\n")
		}
		fmt.Fprintf(&out, "%.80q\n%s %s\n", s, state, digest(got))
	}
	if err := os.WriteFile(exchangesFile, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// digest is a reply in the form of the file: a long one is replaced by its hash.
func digest(reply []byte) string {
	if len(reply) > 500 {
		return fmt.Sprintf("%d bytes %x", len(reply), sha256.Sum256(reply))
	}
	return strconv.Quote(string(reply))
}

// evalHandler answers the commands of the exchanges as Redis does.
func evalHandler(password bool) *echo {
	h := &echo{on: map[string]func(c *Conn, cmd Command){}}
	h.on["eval"] = func(c *Conn, cmd Command) {
		c.Out.Array(len(cmd.Args) - 3)
		for _, a := range cmd.Args[3:] {
			c.Out.Bulk(a)
		}
	}
	if password {
		h.onOpen = func(c *Conn) { c.SetUnauthenticated(true) }
		h.on["auth"] = func(c *Conn, cmd Command) {
			c.SetUnauthenticated(false)
			c.Out.OK()
		}
		h.on["ping"] = func(c *Conn, cmd Command) {
			if c.parser.Unauthenticated {
				c.Out.Error("NOAUTH Authentication required.")
			} else {
				c.Out.Status("PONG")
			}
		}
	}
	h.on["echo"] = func(c *Conn, cmd Command) {
		if len(cmd.Args) != 2 {
			c.Out.Error("ERR wrong number of arguments for 'echo' command")
		} else {
			c.Out.Bulk(cmd.Args[1])
		}
	}
	h.unknown = func(c *Conn, cmd Command) {
		text := fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", cmd.Args[0])
		for _, a := range cmd.Args[1:] {
			text += fmt.Sprintf("'%.128s' ", a)
		}
		c.Out.Error(text)
	}
	return h
}

// splits are ways to cut an input.
func splits(input string) [][]string {
	ways := [][]string{{input}}
	if len(input) > 5000 {
		var pieces []string
		for rest := input; rest != ""; {
			n := min(len(rest), 1009)
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		return append(ways, pieces)
	}
	ways = append(ways, strings.Split(input, ""))
	if len(input) < 100 {
		for i := 1; i < len(input); i++ {
			ways = append(ways, []string{input[:i], input[i:]})
		}
	}
	return ways
}

func TestRecordedExchanges(t *testing.T) {
	if *record != "" {
		recordExchanges(t)
	}
	text, err := os.ReadFile(exchangesFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	list := exchanges()
	if len(lines) != 2*len(list) {
		t.Fatalf("%d lines for %d exchanges: record again", len(lines), len(list))
	}
	closed := 0
	for i := 0; i < len(lines); i += 2 {
		input := list[i/2]
		if lines[i] != fmt.Sprintf("%.80q", input) {
			t.Fatalf("line %d is not exchange %d: record again", i+1, i/2)
		}
		input, auth := strings.CutPrefix(input, "auth:")
		state, want, _ := strings.Cut(lines[i+1], " ")
		for i, pieces := range splits(input) {
			m := NewMemory(evalHandler(auth), micros)
			if i%2 == 1 {
				m.parser.Large = 3
			}
			var got []byte
			for _, p := range pieces {
				got = append(got, m.Feed([]byte(p))...)
			}
			if digest(got) != want || m.Gone() != (state == "closed") {
				t.Errorf("%.100q in %d pieces (the first %.50q):\n got %.200s gone %v\nwant %.200s %s",
					input, len(pieces), pieces[0], digest(got), m.Gone(), want, state)
				break
			}
		}
		if state == "closed" {
			closed++
		}
	}
	if closed < 20 {
		t.Errorf("only %d connections were closed", closed)
	}
}

// TestBigCounts announces more than arrives: nothing may be allocated for it.
func TestBigCounts(t *testing.T) {
	m := NewMemory(&echo{}, micros)
	m.Feed([]byte("*2147483647\r\n$4\r\nPING\r\n$536870912\r\nabc"))
	if cap(m.in.buf) > 1<<12 || cap(m.parser.spans) > 1<<12 || cap(m.scratch.args) > argsKeptMax {
		t.Errorf("room for %d bytes, %d spans, %d arguments", cap(m.in.buf), cap(m.parser.spans), cap(m.scratch.args))
	}
}

// TestQueryBufferLimit sends more than may be held.
func TestQueryBufferLimit(t *testing.T) {
	var reason Reason
	h := &echo{onClose: func(c *Conn) { reason = c.Reason() }}
	m := NewMemory(h, micros)
	m.QueryBufferLimit = 1 << 20
	m.Feed([]byte("*2\r\n$4\r\nECHO\r\n$3000000\r\n"))
	for range 1025 {
		m.Feed(make([]byte, 1024))
	}
	if reason != ReasonInput || !m.Gone() {
		t.Errorf("reason %d, gone %v", reason, m.Gone())
	}
	// Arguments that are complete do not count.
	m = NewMemory(h, micros)
	m.QueryBufferLimit = 1 << 20
	arg := fmt.Sprintf("$%d\r\n%s\r\n", 1<<19, make([]byte, 1<<19))
	m.Feed([]byte("*5\r\n"))
	for range 4 {
		m.Feed([]byte(arg))
	}
	if out := m.Feed([]byte("$1\r\nx\r\n")); m.Gone() || !bytes.HasPrefix(out, []byte("*5\r\n$524288\r\n")) {
		t.Errorf("gone %v, %.40q", m.Gone(), out)
	}
}

// FuzzChunks holds that any chopping of any bytes gives the same replies.
func FuzzChunks(f *testing.F) {
	for i, s := range exchanges() {
		if len(s) < 1000 {
			f.Add([]byte(s), uint16(i))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, seed uint16) {
		run := func(m *Memory, next func(left int) int) (out []byte) {
			for rest := input; len(rest) > 0; {
				n := next(len(rest))
				out = append(out, m.Feed(rest[:n])...)
				rest = rest[n:]
			}
			return out
		}
		whole := NewMemory(&echo{}, micros)
		want := run(whole, func(left int) int { return left })
		for way := range 3 {
			x := uint32(seed)*2654435761 + uint32(way)
			m := NewMemory(&echo{}, micros)
			if way > 0 {
				m.parser.Large = way
			}
			got := run(m, func(left int) int {
				if way == 0 {
					return 1
				}
				x = x*1664525 + 1013904223
				return min(left, 1+int(x>>24)%17)
			})
			if !bytes.Equal(got, want) || m.Gone() != whole.Gone() {
				t.Fatalf("%q: whole %q %v, in pieces %q %v", input, want, whole.Gone(), got, m.Gone())
			}
			if !m.Gone() && m.QueryBytes() != whole.QueryBytes() {
				t.Fatalf("%q: %d and %d bytes left", input, m.QueryBytes(), whole.QueryBytes())
			}
		}
		var s Scanner
		for rest := want; len(rest) > 0; {
			n, err := s.Scan(rest)
			if err != nil {
				t.Fatalf("%q answers %q", input, want)
			}
			rest = rest[n:]
		}
	})
}
