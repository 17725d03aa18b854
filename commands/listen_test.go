package commands_test

// Where a server listens: each word of bind names one address family, as in Redis.

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// reaches reports whether a server answers at an address of this machine.
func reaches(network, host, port string) bool {
	c, err := net.Dial(network, net.JoinHostPort(host, port))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func TestBind(t *testing.T) {
	six := false // whether this machine has IPv6
	if ln, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		six = true
		ln.Close()
	}
	for _, test := range []struct {
		bind     string
		v4, v6   bool
		fails    bool
		anywhere bool // also where there is no IPv6
	}{
		{bind: "127.0.0.1", v4: true, anywhere: true},
		{bind: "0.0.0.0", v4: true, anywhere: true},
		{bind: "*", v4: true, anywhere: true},
		{bind: "localhost", v4: true, anywhere: true},
		{bind: "-192.0.2.1 127.0.0.1", v4: true, anywhere: true},
		{bind: "192.0.2.1", fails: true, anywhere: true},
		{bind: "-192.0.2.1", fails: true, anywhere: true},
		{bind: "* -::*", v4: true, v6: six, anywhere: true},
		{bind: "::1", v6: true},
		{bind: "::", v6: true},
		{bind: "::*", v6: true},
		{bind: "127.0.0.1 ::1", v4: true, v6: true},
	} {
		if !six && !test.anywhere {
			continue
		}
		var mu sync.Mutex
		var log []string
		s, err := commands.New(server.Options{
			Settings: []params.Setting{{Name: "save"}, {Name: "port", Value: "0"}, {Name: "bind", Value: test.bind}},
			Logf: func(level byte, format string, args ...any) {
				mu.Lock()
				log = append(log, string(level)+" "+fmt.Sprintf(format, args...))
				mu.Unlock()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		addrs, err := s.Listen()
		if (err != nil) != test.fails {
			t.Errorf("bind %s: %v", test.bind, err)
		}
		if err == nil {
			_, port, _ := net.SplitHostPort(addrs[0])
			if v4, v6 := reaches("tcp4", "127.0.0.1", port), reaches("tcp6", "::1", port); v4 != test.v4 || v6 != test.v6 {
				t.Errorf("bind %s: reached by IPv4 %v, by IPv6 %v", test.bind, v4, v6)
			}
			s.Ready()
			mu.Lock()
			if !slices.Contains(log, "n Ready to accept connections tcp") {
				t.Errorf("bind %s: the log is %q", test.bind, log)
			}
			mu.Unlock()
		}
		s.Close()
	}
}

// An address that may be missing must still not be in use.
func TestBindInUse(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	s, err := commands.New(server.Options{Settings: []params.Setting{{Name: "save"}, {Name: "port", Value: port}, {Name: "bind", Value: "-127.0.0.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if addrs, err := s.Listen(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("listens on %v: %v", addrs, err)
	}
}

// Nobody may use DEBUG unless a setting allows it, or the server is one for tests.
func TestDebugIsRefused(t *testing.T) {
	const refused = "-ERR DEBUG command not allowed."
	setting := func(v string) []params.Setting { return []params.Setting{{Name: "enable-debug-command", Value: v}} }
	for _, test := range []struct {
		options server.Options
		allowed bool
	}{
		{server.Options{}, false},
		{server.Options{Test: true}, true},
		{server.Options{Settings: setting("yes")}, true},
		{server.Options{Settings: setting("no"), Test: true}, false},
		{server.Options{Settings: setting("local")}, true},
	} {
		test.options.Settings = append(test.options.Settings, params.Setting{Name: "save"}, params.Setting{Name: "port", Value: "0"})
		s, err := commands.New(test.options)
		if err != nil {
			t.Fatal(err)
		}
		addrs, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 200)
		_, _ = c.Write([]byte("DEBUG SLEEP 0\r\n"))
		n, err := c.Read(buf)
		if reply := string(buf[:n]); err != nil || strings.HasPrefix(reply, refused) == test.allowed || test.allowed && reply != "+OK\r\n" {
			t.Errorf("test %v, %v: %q %v", test.options.Test, test.options.Settings, reply, err)
		}
		c.Close()
		s.Close()
	}
}
