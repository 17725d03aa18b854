package files

// A log of a server whose clients could send longer arguments than those of the server that reads it.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestLongArgumentsInLog(t *testing.T) {
	var log []byte
	sizes := []int{1<<20 - 1, 1 << 20, 1<<20 + 1, 20 << 20}
	for _, size := range sizes {
		log = peer.AppendCommand(log, "SET", fmt.Sprint(size), strings.Repeat("x", size))
		log = peer.AppendCommand(log, "APPEND", fmt.Sprint(size), "x")
		log = peer.AppendCommand(log, "SETRANGE", "range", fmt.Sprint(size), "x")
		log = peer.AppendCommand(log, "SETBIT", "bit", fmt.Sprint(size*8), "1")
	}
	last := fmt.Sprint(":", sizes[len(sizes)-1]+1)
	for name, start := range map[string]func(args ...string) *peer.Server{
		"limitkv": func(args ...string) *peer.Server { return peer.LimitKV(t, args...) },
		"redis":   func(args ...string) *peer.Server { return peer.Redis(t, required, args...) },
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), log, 0o600); err != nil {
			t.Fatal(err)
		}
		c := start("--dir", dir, "--save", "", "--appendonly", "yes", "--proto-max-bulk-len", "1mb").Dial(t)
		for _, size := range sizes {
			if got := do(t, c, fmt.Sprint("STRLEN ", size)); got != fmt.Sprint(":", size+1) {
				t.Errorf("%s: of %d bytes and one %s are there", name, size, got)
			}
		}
		for _, key := range []string{"range", "bit"} {
			if got := do(t, c, "STRLEN "+key); got != last {
				t.Errorf("%s: %s is %s bytes, want %s", name, key, got, last)
			}
		}
		for _, line := range []string{"APPEND 1048576 x", "SETRANGE new 1048576 x", "SETBIT new 8388608 1"} {
			if got := do(t, c, line); got[0] != '-' {
				t.Errorf("%s: a client's %s: %s", name, line, got)
			}
		}
	}
}
