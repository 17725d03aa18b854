package scripting

import (
	"fmt"
	"strings"
	"testing"
)

// A panic in the compiler leaves nothing prepared and nothing taken.
func TestPreparePanics(t *testing.T) {
	f := &family{compilers: make(chan struct{}, 1)}
	for range 2 {
		var p prepared
		log := ""
		f.aside(&p, func(_ byte, format string, args ...any) { log = fmt.Sprintf(format, args...) }, func(*prepared) { panic("a bug") })
		if !p.done.Load() || p.script != nil || p.err != nil || p.library != nil {
			t.Errorf("after a panic: %+v", &p)
		}
		if !strings.Contains(log, "a bug") || !strings.Contains(log, "prepare_test.go") {
			t.Errorf("the log does not say what and where: %s", log)
		}
	}
}
