// How often keys are used, on both servers: what of it a log keeps, and what a snapshot does.
package files

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// TestUsageInFiles: no effect tells that a key was read, so after a restart from commands a counter is what the writes make
// of it; RESTORE's is in its effect, and a snapshot has them all. With lfu-log-factor 0 each access counts.
func TestUsageInFiles(t *testing.T) {
	args := []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lfu", "--lfu-log-factor", "0", "--lfu-decay-time", "0",
		"--auto-aof-rewrite-percentage", "0"}
	for name, start := range map[string]func(t *testing.T, dir string) *peer.Server{
		"redis": func(t *testing.T, dir string) *peer.Server {
			return peer.Redis(t, required, append(args, "--dir", dir)...)
		},
		"limitkv": func(t *testing.T, dir string) *peer.Server { return peer.LimitKV(t, append(args, "--dir", dir)...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir)
			c := s.Dial(t)
			send := func(words ...string) string {
				v, err := c.Do(words...)
				if err != nil || v.IsError() {
					t.Fatalf("%v: %v %v", words, v, err)
				}
				return v.Text
			}
			freqs := func() (all string) {
				for _, key := range []string{"read", "written", "restored", "both"} {
					all += " " + do(t, c, "OBJECT FREQ "+key)
				}
				return strings.TrimSpace(all)
			}
			again := func() {
				t.Helper()
				end(t, c)
				gone(t, s)
				s = start(t, dir)
				c = s.Dial(t)
				until(t, c, "loading:0")
			}
			send("SET", "written", "v")
			payload := send("DUMP", "written")
			send("APPEND", "written", "v")
			send("SET", "read", "v")
			for _, key := range []string{"restored", "both"} {
				send("RESTORE", key, "0", payload, "FREQ", "200")
			}
			for range 10 {
				for _, line := range []string{"GET read", "TOUCH read", "GET both"} {
					do(t, c, line)
				}
			}
			do(t, c, "APPEND both v")
			if got := freqs(); got != ":25 :7 :200 :211" {
				t.Errorf("before: %s", got)
			}
			again()
			if got := freqs(); got != ":5 :6 :200 :201" {
				t.Errorf("made of commands: %s", got)
			}
			for range 10 {
				do(t, c, "GET read")
			}
			do(t, c, "BGREWRITEAOF")
			until(t, c, "aof_rewrite_in_progress:0")
			again()
			if got := freqs(); got != ":15 :6 :200 :201" {
				t.Errorf("made of a snapshot: %s", got)
			}
		})
	}
}
