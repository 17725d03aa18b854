// Package livetest, internal to the server's tests, starts a server for one test, in the test's process. Its clock stands
// until the test moves it, and its clients speak the protocol over a socket. So families are tested as clients use them.
package livetest

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// Epoch is where the clock stands at first, in Unix milliseconds.
const Epoch int64 = 1_700_000_000_000

// patience is how long a reply, or a client that is to block, may take.
const patience = 5 * time.Second

// Server is a running server.
type Server struct {
	*server.Server
	t     testing.TB
	addr  string
	admin *Client
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server { t.Helper(); return StartWith(t, func(*server.Server) {}) }

// StartWith is Start for a server that is changed before it serves anybody.
func StartWith(t testing.TB, change func(*server.Server)) *Server {
	t.Helper()
	s, err := commands.New(server.Options{
		Settings:   []params.Setting{{Name: "port", Value: "0"}},
		Loops:      2,
		FixedLoops: true,
		Test:       true,
		Logf: func(level byte, format string, args ...any) {
			if level == 'w' && !expected(format) {
				t.Errorf("the server warns: "+format, args...)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	addrs, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, ks := range s.Keyspace.Siblings() {
			err := ks.Check()
			for end := time.Now().Add(ending); err != nil && time.Now().Before(end); err = ks.Check() {
				time.Sleep(time.Millisecond)
			}
			if err != nil {
				t.Errorf("afterwards: %v", err)
			}
		}
	})
	live := &Server{Server: s, t: t, addr: addrs[0]}
	live.admin = live.Client()
	live.admin.Want("OK", "LKV.CLOCK", "FREEZE", strconv.FormatInt(Epoch, 10))
	return live
}

// ending is how long a long command may continue after the server has ended, which does not wait for it.
const ending = 10 * time.Second

// expected reports whether a warning is about the machine and not about a bug: the machine is slow, it has few descriptors
// for maxclients, or its clock was set.
func expected(format string) bool {
	for _, begin := range []string{"Slow script detected", "You requested maxclients of", "Server can't set maximum open files", "Current maximum open files", "The system's clock went"} {
		if strings.HasPrefix(format, begin) {
			return true
		}
	}
	return false
}

// NoLog is a log for servers that are expected to warn.
type NoLog struct{}

// Printf writes nothing.
func (NoLog) Printf(byte, string, ...any) {}

// Advance moves the clock by milliseconds. When it returns, everything that fell due has happened.
func (s *Server) Advance(ms int64) {
	s.t.Helper()
	s.admin.Want("OK", "LKV.CLOCK", "ADVANCE", strconv.FormatInt(ms, 10))
}

// Now is the server's time in Unix milliseconds.
func (s *Server) Now() int64 { return s.Keyspace.Clock.Now() / 1000 }

// Blocked waits until exactly n clients block.
func (s *Server) Blocked(n int64) {
	s.t.Helper()
	for end := time.Now().Add(patience); s.BlockedClients.Load() != n; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%d clients block, not %d", s.BlockedClients.Load(), n)
		}
	}
}

// Client is a connection.
type Client struct {
	t    testing.TB
	conn net.Conn
	buf  []byte
	n    int
}

// Client connects to the server.
func (s *Server) Client() *Client { s.t.Helper(); return s.ClientAt(s.addr) }

// ClientAt connects to another address of the server.
func (s *Server) ClientAt(addr string) *Client {
	s.t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return &Client{t: s.t, conn: conn, buf: make([]byte, 4096)}
}

// Close drops the connection.
func (c *Client) Close() { c.conn.Close() }

// Do sends a command and returns its reply as text: integers and strings as
// they are, nil, errors with a minus, arrays and maps in brackets.
func (c *Client) Do(args ...any) string {
	c.t.Helper()
	c.Send(args...)
	return c.Read()
}

// Want is Do with the reply that it must have.
func (c *Client) Want(reply string, args ...any) {
	c.t.Helper()
	if got := c.Do(args...); got != reply {
		c.t.Errorf("%v\n got %s\nwant %s", args, got, reply)
	}
}

// Info is a field of a section of INFO, "" if it has none.
func (c *Client) Info(section, name string) string {
	c.t.Helper()
	for line := range strings.SplitSeq(c.Do("INFO", section), "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	return ""
}

// InfoInt is Info for a number, which has to be there.
func (c *Client) InfoInt(section, name string) int64 {
	c.t.Helper()
	n, err := strconv.ParseInt(c.Info(section, name), 10, 64)
	if err != nil {
		c.t.Fatalf("INFO %s, %s: %v", section, name, err)
	}
	return n
}

// Line is Do with a command in one line, whose words are separated by blanks.
func (c *Client) Line(line string) string {
	c.t.Helper()
	var args []any
	for _, w := range strings.Fields(line) {
		args = append(args, w)
	}
	return c.Do(args...)
}

// Send sends a command and does not wait for its reply.
func (c *Client) Send(args ...any) {
	c.t.Helper()
	if _, err := c.conn.Write(Append(nil, args...)); err != nil {
		c.t.Fatal(err)
	}
}

// Write sends bytes, which need be no command.
func (c *Client) Write(b []byte) error { _, err := c.conn.Write(b); return err }

// Append appends a command as it is sent.
func Append(b []byte, args ...any) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		s := fmt.Sprint(a)
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(s), s)
	}
	return b
}

// Pipeline sends n commands at once and reads past their replies, for
// benchmarks.
func (c *Client) Pipeline(commands []byte, n int) {
	c.t.Helper()
	if _, err := c.conn.Write(commands); err != nil {
		c.t.Fatal(err)
	}
	c.conn.SetReadDeadline(time.Now().Add(patience))
	var scan resp.Scanner
	for n > 0 {
		size, err := scan.Scan(c.buf[:c.n])
		if err == nil {
			c.n = copy(c.buf, c.buf[size:c.n])
			n--
			continue
		}
		if c.n == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		got, err := c.conn.Read(c.buf[c.n:])
		if err != nil {
			c.t.Fatal(err)
		}
		c.n += got
	}
}

// Read returns the next reply.
func (c *Client) Read() string {
	c.t.Helper()
	text, ok := c.read(patience)
	if !ok {
		c.t.Fatal("no reply")
	}
	return text
}

// Poll returns the next reply, if it is there within a time.
func (c *Client) Poll(wait time.Duration) (text string, ok bool) { c.t.Helper(); return c.read(wait) }

// Silent fails the test if a reply is there or comes within a moment.
func (c *Client) Silent() {
	c.t.Helper()
	if text, ok := c.read(3 * time.Millisecond); ok {
		c.t.Fatalf("a reply came: %s", text)
	}
}

// Ended reports whether the server closes the connection, perhaps after more replies. It waits as long as for a reply.
func (c *Client) Ended() bool {
	c.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, err := c.conn.Read(c.buf); err != nil {
			var timeout net.Error
			return !errors.As(err, &timeout) || !timeout.Timeout()
		}
	}
}

func (c *Client) read(wait time.Duration) (text string, ok bool) {
	c.conn.SetReadDeadline(time.Now().Add(wait))
	var scan resp.Scanner
	for {
		n, err := scan.Scan(c.buf[:c.n])
		if err != nil && err != resp.ErrIncomplete {
			c.t.Fatal(err)
		}
		if err == nil {
			r := resp.NewReader(c.buf[:n])
			text = show(c.t, &r)
			c.n = copy(c.buf, c.buf[n:c.n])
			return text, true
		}
		if c.n == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		got, err := c.conn.Read(c.buf[c.n:])
		c.n += got
		if err != nil {
			return "", false
		}
	}
}

func show(t testing.TB, r *resp.Reader) string {
	v, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if v.Null {
		return "nil"
	}
	switch v.Kind {
	case resp.KindError, resp.KindBulkError:
		return "-" + string(v.Data)
	case resp.KindArray, resp.KindMap, resp.KindSet, resp.KindPush:
		items := make([]string, v.N)
		for i := range items {
			items[i] = show(t, r)
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return string(v.Data)
}
