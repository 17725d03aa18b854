package files

// What signals of faults leave in the log.

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestReports(t *testing.T) {
	t.Run("SIGALRM", func(t *testing.T) {
		s := peer.LimitKV(t)
		c := s.Dial(t)
		if err := s.Signal(syscall.SIGALRM); err != nil {
			t.Fatal(err)
		}
		s.Says(t, "STACK TRACE DONE", "goroutine ")
		if v := do(t, c, "PING"); v != "+PONG" {
			t.Error(v)
		}
	})
	faults := map[string]func(s *peer.Server, c *peer.Conn) error{
		"ABRT": func(s *peer.Server, _ *peer.Conn) error { return s.Signal(syscall.SIGABRT) },
		"SEGV": func(s *peer.Server, _ *peer.Conn) error { return s.Signal(syscall.SIGSEGV) },
		"DEBUG": func(_ *peer.Server, c *peer.Conn) error {
			_, _ = c.Do("DEBUG", "SEGFAULT") // its reply may come or not
			return nil
		},
	}
	for name, fault := range faults {
		for _, quiet := range []bool{false, true} {
			s := peer.LimitKV(t)
			c := s.Dial(t)
			if quiet {
				do(t, c, "CONFIG SET crash-log-enabled no")
			}
			if err := fault(s, c); err != nil {
				t.Fatal(err)
			}
			if !s.Ends(60 * time.Second) {
				t.Fatalf("%s does not end the server", name)
			}
			if got := strings.Contains(s.Output(), "crashed by signal: ") && strings.Contains(s.Output(), "STACK TRACE DONE"); got == quiet {
				t.Errorf("%s, crash-log-enabled no: %v, and the log is\n%s", name, quiet, s.Output())
			}
		}
	}
}
