package replicas

// With appendfsync always a replica is not told of what its primary has not synced: if the primary lost its power, the
// replica would know more than it.

import (
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestAlways(t *testing.T) {
	const slow = time.Second // each write of the log
	p := primary(t, "--appendonly", "yes", "--appendfsync", "always")
	r := kinds["redis"](t)
	follow(t, r, p.Addr)
	eventually(t, "the replica is there", func() bool { return field(t, r, "master_link_status") == "up" })
	must(t, p, "SET", "k", "1")
	same(t, p, r)
	must(t, p, "DEBUG", "AOF-FLUSH-SLEEP", "1000000")
	defer must(t, p, "DEBUG", "AOF-FLUSH-SLEEP", "0")

	// write sets a key, of which the reply waits for the log, and returns when.
	write := func(key string) time.Time {
		c := p.Dial(t)
		ran, began := field(t, p, "cmdstat_set"), time.Now()
		if err := c.Send("SET", key, "v"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it has run", func() bool { return field(t, p, "cmdstat_set") != ran })
		return began
	}
	arrives := func(s *peer.Server, key string, began time.Time) {
		t.Helper()
		eventually(t, key+" arrives", func() bool { return must(t, s, "EXISTS", key).Text == "1" })
		if took := time.Since(began); took < slow*9/10 {
			t.Errorf("%s has %s after %v, and no log was written in less than %v", s.Name, key, took, slow)
		}
	}
	arrives(r, "k2", write("k2"))

	// A snapshot tells of it, too.
	began := write("k3")
	second := kinds["redis"](t)
	follow(t, second, p.Addr)
	arrives(second, "k3", began)
	arrives(r, "k3", began)
	must(t, p, "DEBUG", "AOF-FLUSH-SLEEP", "0")
	same(t, p, r)
	same(t, p, second)
}
