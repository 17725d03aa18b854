// DQ.MPOP waits for the first of its keys, whichever became ready first.
package delayqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// What one transaction, script or moment makes ready is delivered when it is over: first come, first served, to each waiter
// in its own order of keys.
func TestWhoWaitsForSeveralQueues(t *testing.T) {
	for what, test := range map[string]struct {
		line []string // keys of the waiters
		adds []string // key and due time, in ms from now, of what becomes ready, in this order
		want []string // what each gets
	}{
		"the second key first":      {[]string{"a b"}, []string{"b 0", "a 0"}, []string{"a"}},
		"crossed":                   {[]string{"a b", "b a"}, []string{"b 0", "a 0"}, []string{"a", "b"}},
		"crossed, otherwise":        {[]string{"b a", "a b"}, []string{"b 0", "a 0"}, []string{"b", "a"}},
		"in a circle":               {[]string{"a b", "b c", "c a"}, []string{"c 0", "b 0", "a 0"}, []string{"a", "b", "c"}},
		"who came before has it":    {[]string{"a", "a b"}, []string{"b 0", "a 0"}, []string{"a", "b"}},
		"who came before has other": {[]string{"c a", "a b"}, []string{"b 0", "a 0", "c 0"}, []string{"c", "a"}},
		"less than all want":        {[]string{"a b", "b a", "b"}, []string{"b 0", "a 0"}, []string{"a", "b", ""}},
		"a key twice":               {[]string{"a b a"}, []string{"b 0", "a 0"}, []string{"a"}},
		"two of one":                {[]string{"a b", "a b"}, []string{"b 0", "a 0", "a 0"}, []string{"a", "a"}},
		"due in one moment":         {[]string{"a b"}, []string{"b 100", "a 100"}, []string{"a"}},
		"crossed and due":           {[]string{"a b", "b a"}, []string{"b 100", "a 100"}, []string{"a", "b"}},
		"one after the other":       {[]string{"a b", "b a"}, []string{"b 100", "a 101"}, []string{"b", "a"}},
	} {
		for _, kind := range []string{"queue", "zset"} {
			for _, by := range []string{"MULTI", "EVAL"} {
				t.Run(what+" "+kind+" "+by, func(t *testing.T) {
					s := livetest.Start(t)
					c := s.Client()
					var line []*livetest.Client
					for i, keys := range test.line {
						w, args := s.Client(), []any{"DQ.MPOP", len(strings.Fields(keys))}
						for _, key := range strings.Fields(keys) {
							args = append(args, key)
						}
						w.Send(append(args, "BLOCK", 0)...)
						s.Blocked(int64(i + 1))
						line = append(line, w)
					}
					var script strings.Builder
					for i, add := range test.adds {
						var key string
						var at int64
						fmt.Sscan(add, &key, &at)
						command := []string{"DQ.ADD", key, "AT", fmt.Sprint(s.Now() + at), "ID", fmt.Sprint("x", i), "p"}
						if kind == "zset" {
							command = []string{"ZADD", key, fmt.Sprint(s.Now() + at), fmt.Sprint("x", i)}
						}
						fmt.Fprintf(&script, "redis.call('%s')\n", strings.Join(command, "','"))
						if by == "MULTI" && i == 0 {
							c.Want("OK", "MULTI")
						}
						if by == "MULTI" {
							c.Want("QUEUED", anys(strings.Join(command, " "))...)
						}
					}
					if by == "MULTI" {
						c.Do("EXEC")
					} else {
						c.Want("nil", "EVAL", script.String(), 0)
					}
					for range 101 {
						s.Advance(1)
					}
					waiting := int64(0)
					for i, want := range test.want {
						if want == "" {
							line[i].Silent()
							waiting++
						} else if got := line[i].Read(); !strings.HasPrefix(got, "["+want+" ") {
							t.Errorf("%q got %s, want %s", test.line[i], got, want)
						}
					}
					s.Blocked(waiting)
				})
			}
		}
	}
}
