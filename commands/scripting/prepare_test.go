package scripting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// A panic in the compiler leaves nothing prepared, and frees its place.
func TestPreparePanics(t *testing.T) {
	lines := new(lines)
	s := &command.Server{Clients: command.NewClients(), Log: lines}
	s.Clients.Add(&command.Session{ID: 7})
	f := &family{s: &server.Server{Server: s}}
	for range cap(compilers) + 1 {
		p := prepared{session: 7}
		f.aside(&p, func(*prepared) { panic("a bug") })
		log := lines.last
		if !p.done.Load() || p.script != nil || p.err != nil || p.library != nil {
			t.Errorf("after a panic: %+v", &p)
		}
		if !strings.Contains(log, "a bug") || !strings.Contains(log, "prepare_test.go") {
			t.Errorf("the log does not say what and where: %s", log)
		}
	}
}

// lines is a log.
type lines struct{ last string }

func (l *lines) Printf(_ byte, format string, args ...any) { l.last = fmt.Sprintf(format, args...) }
