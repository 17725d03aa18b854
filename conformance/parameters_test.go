// CONFIG SET: what a parameter may be. Every parameter that can be set while the server runs is given good and bad
// values, on both servers, and read back.
package conformance

import (
	"slices"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// triedValues are numbers, words, sizes and what is none of them.
var triedValues = []string{
	"abc", "-1", "0", "1", "2", "yes", "no", "YES", "", "1.5", "100mb", "50%", "101%", "99999999999", "9223372036854775807", "1 2", "1k", "kb", "65535", "65536", "2147483647", "2147483648",
	"0 200 800", "1 2 3001", "60 1", "default", "default now", "now NOSAVE", "force foo", "a.b-c", "{title}", "{nosuch}", "C",
}

// untried would have a server listen elsewhere, write files, ask for a password or let nobody in.
var untried = []string{
	"port", "bind", "requirepass", "maxclients", "appendonly", "oom-score-adj",
	// With these Redis 8.0.6 without certificates ends by a segmentation fault.
	"tls-port", "tls-replication", "tls-cluster",
}

func TestParameters(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	conns := map[*peer.Server]*peer.Conn{}
	do := func(s *peer.Server, args ...string) peer.Value {
		var v peer.Value
		var err error
		for range 2 { // a value can be one that has the server let go of the connection
			if conns[s] == nil {
				conns[s] = s.Dial(t)
			}
			if v, err = conns[s].Do(args...); err == nil {
				return v
			}
			conns[s] = nil
		}
		t.Fatal(s.Name, args, err)
		return v
	}
	tried := 0
	all := do(oracle, "CONFIG", "GET", "*")
	for i := 0; i < len(all.Items); i += 2 {
		name, initial := all.Items[i].Text, all.Items[i+1].Text
		if slices.Contains(untried, name) {
			continue
		}
		for _, value := range triedValues {
			tried++
			want, got := do(oracle, "CONFIG", "SET", name, value), do(tested, "CONFIG", "SET", name, value)
			if !want.Equal(got) {
				t.Errorf("CONFIG SET %s %q\n  want %v\n  got  %v", name, value, want, got)
				continue
			}
			if want.IsError() {
				continue
			}
			if want, got = do(oracle, "CONFIG", "GET", name), do(tested, "CONFIG", "GET", name); !want.Equal(got) {
				t.Errorf("CONFIG SET %s %q, and GET is\n  want %v\n  got  %v", name, value, want, got)
			}
			for _, s := range []*peer.Server{oracle, tested} {
				do(s, "CONFIG", "SET", name, initial)
			}
		}
	}
	if tried < 3000 {
		t.Errorf("only %d values were tried", tried)
	}
}
