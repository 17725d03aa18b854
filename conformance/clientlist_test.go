package conformance

// CLIENT LIST of clients in transactions and of those that wait: what the arguments take that are kept for them, and how many
// keys they watch.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// listed is what a client sends, with a look at it behind each command. "2 " is another client; what waits is at the end. Left
// out is what is shown otherwise: Redis lists the keys still if FLUSHALL changed them, and what XREAD's $ means for the $.
var listed = []string{
	"MULTI\nSET k v\nSET a-longer-key a-value-of-some-length\nGET k\nEXEC",
	"MULTI\nSET k v\nDISCARD\nMULTI\nEXEC",
	"MULTI\nSET k\nSET k v\nDISCARD",
	"WATCH w1 w2\nWATCH w1\n2 SET w1 x\nWATCH w3\nMULTI\nSET k v\n2 SET w3 x\nEXEC\nWATCH w3\nUNWATCH",
	"WATCH w1\nMULTI\nSET k v\n2 SET w1 x\nSET k2 v\nDISCARD\nWATCH w1",
	"WATCH w1\nMULTI\n2 SET other x\nSET k v\nEXEC",
	"WATCH w1 w2\n2 FLUSHALL\nMULTI\nEXEC",
	"BLPOP none 0", "BLPOP none a-longer-key-that-is-not-there 0", "XREAD BLOCK 0 STREAMS none 5-5", "BLMOVE none other LEFT LEFT 0",
	"BZMPOP 0 2 none other MIN", "WAIT 1 0",
}

func TestClientListMemory(t *testing.T) {
	servers := []*peer.Server{redis(t), peer.LimitKV(t)}
	for _, lines := range listed {
		var got [2]string
		for i, s := range servers {
			got[i] = looks(t, s, lines)
		}
		if got[0] != got[1] {
			t.Errorf("%s\nwant\n%s\ngot\n%s", lines, got[0], got[1])
		}
	}
}

// looks runs commands and returns what is shown of their client behind each.
func looks(t *testing.T, s *peer.Server, lines string) string {
	t.Helper()
	c, control := s.Dial(t), s.Dial(t)
	defer c.Close()
	do := func(c *peer.Conn, args ...string) string {
		v, err := c.Do(args...)
		if err != nil {
			t.Fatal(s.Name, args, err)
		}
		return v.Text
	}
	do(control, "FLUSHALL")
	id := do(c, "CLIENT", "ID")
	var out strings.Builder
	for _, line := range strings.Split(lines, "\n") {
		args, err := recorded.Split(strings.TrimPrefix(line, "2 "))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(line, "2 "):
			do(control, args...)
		case strings.HasPrefix(line, "B") || strings.Contains(line, "BLOCK") || strings.HasPrefix(line, "WAIT "):
			if err := c.Send(args...); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(peer.ReplyTimeout); !strings.Contains(do(control, "CLIENT", "LIST", "ID", id), " flags=b"); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: %s does not wait", s.Name, line)
				}
			}
		default:
			do(c, args...)
		}
		shown := []string{line}
		for _, field := range strings.Fields(do(control, "CLIENT", "LIST", "ID", id)) {
			name, _, _ := strings.Cut(field, "=")
			if slices.Contains([]string{"flags", "multi", "watch", "argv-mem", "multi-mem"}, name) {
				shown = append(shown, field)
			}
		}
		for _, field := range strings.Fields(do(control, "INFO", "clients")) {
			if strings.HasPrefix(field, "watching_clients") || strings.HasPrefix(field, "total_watched_keys") {
				shown = append(shown, field)
			}
		}
		out.WriteString(strings.Join(shown, " ") + "\n")
	}
	return out.String()
}
