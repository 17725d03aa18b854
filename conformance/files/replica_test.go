package files

// A replica that starts with a log in which there are scripts, as Redis before 7 kept them.

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestScriptsInReplicasLog(t *testing.T) {
	for name, start := range map[string]func(args ...string) *peer.Server{
		"limitkv": func(args ...string) *peer.Server { return peer.LimitKV(t, args...) },
		"redis":   func(args ...string) *peer.Server { return peer.Redis(t, required, args...) },
	} {
		dir := t.TempDir()
		log := peer.AppendCommand(nil, "SELECT", "0")
		for range 3 {
			log = peer.AppendCommand(log, "EVAL", "redis.call('INCR', KEYS[1]) return redis.call('RPUSH', KEYS[2], 'x')", "2", "n", "list")
		}
		if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), log, 0o600); err != nil {
			t.Fatal(err)
		}
		c := start("--dir", dir, "--save", "", "--appendonly", "yes", "--replicaof", "127.0.0.1 1").Dial(t)
		for line, want := range map[string]string{"GET n": "\"3\"", "LLEN list": ":3"} {
			if got := do(t, c, line); got != want {
				t.Errorf("%s: %s replies %s, not %s", name, line, got, want)
			}
		}
		if got := do(t, c, "EVAL return(redis.call('INCR',KEYS[1])) 1 n"); len(got) < 9 || got[:9] != "-READONLY" {
			t.Errorf("%s: a client's script: %s", name, got)
		}
	}
}
