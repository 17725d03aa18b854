package peer

// What tests ask of servers again and again, and wait for.

import (
	"flag"
	"net"
	"os"
	"testing"
	"time"
)

// Main runs the tests of a package that starts servers.
func Main(m *testing.M) {
	flag.Parse()
	code := m.Run()
	Cleanup()
	os.Exit(code)
}

// asked is a connection, or a server, to which each question has one of its own.
type asked interface {
	Must(tb testing.TB, args ...string) Value
	Info(tb testing.TB, name string) string
}

// Must sends a command and returns its reply, which may be an error. Where there is none the test fails.
func (c *Conn) Must(tb testing.TB, args ...string) Value {
	tb.Helper()
	v, err := c.Do(args...)
	if err != nil {
		tb.Fatalf("%v: %v", args, err)
	}
	return v
}

// Must is Conn's, over a connection of its own.
func (s *Server) Must(tb testing.TB, args ...string) Value {
	tb.Helper()
	c, err := Dial(s.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	v, err := c.Do(args...)
	if err != nil {
		tb.Fatalf("%s: %v: %v\n%s", s.Name, args, err, s.Output())
	}
	return v
}

// Info is a field of INFO, "" if there is none.
func (c *Conn) Info(tb testing.TB, name string) string { tb.Helper(); return info(tb, c, name) }

// Info is Conn's, over a connection of its own.
func (s *Server) Info(tb testing.TB, name string) string { tb.Helper(); return info(tb, s, name) }

func info(tb testing.TB, of asked, name string) string {
	tb.Helper()
	return Field(of.Must(tb, "INFO", "everything").Text, name)
}

// patience is how long tests wait for what takes some seconds at most.
const patience = 60 * time.Second

// Eventually waits for something to be so.
func Eventually(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			stuck(tb)
			tb.Fatalf("within %v it did not come: %s", patience, what)
		}
	}
}

// Ends tells whether a server ends within a time.
func (s *Server) Ends(within time.Duration) bool {
	for end := time.Now().Add(within); s.Alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Follow tells a server to follow the one at an address.
func Follow(tb testing.TB, replica asked, addr string) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(addr)
	if v := replica.Must(tb, "REPLICAOF", host, port); v.Text != "OK" {
		tb.Fatalf("REPLICAOF: %v", v)
	}
}

// Join has a server follow another one, and waits for the link.
func Join(tb testing.TB, replica asked, primary *Server) {
	tb.Helper()
	Follow(tb, replica, primary.Addr)
	Linked(tb, replica)
}

// Linked waits until a replica has its primary's keys and is sent what follows.
func Linked(tb testing.TB, replica asked) {
	tb.Helper()
	Eventually(tb, "the link to the primary", func() bool { return replica.Info(tb, "master_link_status") == "up" })
}

// CaughtUp waits until a replica has all that its primary has sent.
func CaughtUp(tb testing.TB, primary, replica asked) {
	tb.Helper()
	Eventually(tb, "the replica's offset", func() bool {
		return replica.Info(tb, "master_link_status") == "up" && replica.Info(tb, "slave_repl_offset") == primary.Info(tb, "master_repl_offset")
	})
}
