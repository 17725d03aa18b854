package replicas

// With appendfsync always a replica is not told of what its primary has not synced: if the primary lost its power, the
// replica would know more than it.

import (
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestAlways(t *testing.T) {
	peer.Long(t)
	const slow = time.Second // each write of the log
	p := primary(t, "--appendonly", "yes", "--appendfsync", "always")
	r := kinds["redis"](t)
	peer.Follow(t, r, p.Addr)
	peer.Eventually(t, "the replica is there", func() bool { return r.Info(t, "master_link_status") == "up" })
	p.Must(t, "SET", "k", "1")
	same(t, p, r)
	p.Must(t, "DEBUG", "AOF-FLUSH-SLEEP", "1000000")
	defer p.Must(t, "DEBUG", "AOF-FLUSH-SLEEP", "0")

	// write sets a key, of which the reply waits for the log, and returns when.
	write := func(key string) time.Time {
		c := p.Dial(t)
		ran, began := p.Info(t, "cmdstat_set"), time.Now()
		if err := c.Send("SET", key, "v"); err != nil {
			t.Fatal(err)
		}
		peer.Eventually(t, "it has run", func() bool { return p.Info(t, "cmdstat_set") != ran })
		return began
	}
	arrives := func(s *peer.Server, key string, began time.Time) {
		t.Helper()
		peer.Eventually(t, key+" arrives", func() bool { return s.Must(t, "EXISTS", key).Text == "1" })
		if took := time.Since(began); took < slow*9/10 {
			t.Errorf("%s has %s after %v, and no log was written in less than %v", s.Name, key, took, slow)
		}
	}
	arrives(r, "k2", write("k2"))

	// A snapshot tells of it, too.
	began := write("k3")
	second := kinds["redis"](t)
	peer.Follow(t, second, p.Addr)
	arrives(second, "k3", began)
	arrives(r, "k3", began)
	p.Must(t, "DEBUG", "AOF-FLUSH-SLEEP", "0")
	same(t, p, r)
	same(t, p, second)
}
