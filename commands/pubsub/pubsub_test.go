package pubsub_test

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// CLIENT LIST shows how many channels, patterns and shard channels a client listens to.
func TestListedSubscriptions(t *testing.T) {
	s := livetest.Start(t)
	c, admin := s.Client(), s.Client()
	id := c.Do("CLIENT", "ID")
	for _, step := range []struct {
		line string
		n    int // replies
		want string
	}{
		{"PING", 1, " sub=0 psub=0 ssub=0 "},
		{"SUBSCRIBE a b", 2, " sub=2 psub=0 ssub=0 "},
		{"SUBSCRIBE b c", 2, " sub=3 psub=0 ssub=0 "},
		{"PSUBSCRIBE a*", 1, " sub=3 psub=1 ssub=0 "},
		{"SSUBSCRIBE s t", 2, " sub=3 psub=1 ssub=2 "},
		{"UNSUBSCRIBE a", 1, " sub=2 psub=1 ssub=2 "},
		{"SUNSUBSCRIBE", 2, " sub=2 psub=1 ssub=0 "},
		{"RESET", 1, " sub=0 psub=0 ssub=0 "},
	} {
		c.Line(step.line)
		for range step.n - 1 {
			c.Read()
		}
		if got := admin.Do("CLIENT", "LIST", "ID", id); !strings.Contains(got, step.want) {
			t.Errorf("after %s: %s has no%s", step.line, got, step.want)
		}
	}
}
