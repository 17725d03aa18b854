package observe_test

import (
	"fmt"
	"strings"
	"testing"
)

// Keys with a configured prefix are counted for their longest one, and no metric has a label with a key.
func TestPrefixes(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "metrics-prefixes", "eu: eu:vip: us:")
	for _, key := range []string{"eu:1", "eu:2", "eu:vip:1", "other", "eu"} {
		c.Do("RL.SET", key, "FIXED", "2", "100000")
		for range 3 {
			c.Do("RL.ACQUIRE", key)
		}
	}
	c.Do("RL.MACQUIRE", "2", "eu:1", "1", "us:1", "1", "RULE", "2", "FIXED", "1", "100000")
	for i := range 5 {
		c.Do("DQ.ADD", fmt.Sprint("eu:vip:q", i), "payload")
		c.Do("DQ.ADD", fmt.Sprint("eu:vip:q", i), "DELAY", "100000", "later")
	}
	c.Do("DQ.POP", "eu:vip:q0", "LEASE", "100000")
	c.Do("DQ.ADD", "unnamed", "payload")
	c.Do("LK.ACQUIRE", "us:lock", "a", "100000")
	c.Do("LK.ACQUIRE", "us:lock", "b", "100000")
	want := func(values map[string]float64) {
		t.Helper()
		_, text := s.send("/metrics", "")
		got := samples(t, text)
		for name, want := range values {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
			}
		}
		if strings.Contains(text, "unnamed") || strings.Contains(text, "vip:q") {
			t.Error("a key is a label")
		}
	}
	want(map[string]float64{
		`limitkv_prefix_limiter_calls_granted_total{prefix="eu:"}`:      4,
		`limitkv_prefix_limiter_calls_refused_total{prefix="eu:"}`:      3,
		`limitkv_prefix_limiter_calls_granted_total{prefix="eu:vip:"}`:  2,
		`limitkv_prefix_limiter_calls_granted_total{prefix="us:"}`:      0,
		"limitkv_limiter_calls_granted_total":                           10,
		`limitkv_prefix_lock_calls_granted_total{prefix="us:"}`:         1,
		`limitkv_prefix_lock_calls_refused_total{prefix="us:"}`:         1,
		`limitkv_prefix_queues{prefix="eu:vip:"}`:                       5,
		`limitkv_prefix_queues{prefix="eu:"}`:                           0,
		`limitkv_prefix_queue_entries_ready{prefix="eu:vip:"}`:          4,
		`limitkv_prefix_queue_entries_delayed{prefix="eu:vip:"}`:        5,
		`limitkv_prefix_queue_entries_leased{prefix="eu:vip:"}`:         1,
		`limitkv_prefix_queue_lateness_seconds_count{prefix="eu:vip:"}`: 1,
		`limitkv_queue_lateness_seconds_count`:                          1,
		"limitkv_queue_entries_ready":                                   5,
		"limitkv_queue_entries_delayed":                                 5,
	})
	c.Want("OK", "CONFIG", "SET", "metrics-prefixes", "us: eu:")
	c.Do("RL.ACQUIRE", "eu:vip:1")
	want(map[string]float64{
		`limitkv_prefix_limiter_calls_refused_total{prefix="eu:"}`: 4,
		`limitkv_prefix_queues{prefix="eu:"}`:                      5,
		`limitkv_prefix_lock_calls_granted_total{prefix="us:"}`:    1,
	})
	s.runs(map[string]any{"metrics-prefixes": "eu: us:"}, "CONFIG", "GET", "metrics-prefixes")
	c.Want("OK", "CONFIG", "SET", "metrics-prefixes", many(1000))
	refused := "-ERR CONFIG SET failed (possibly related to argument 'metrics-prefixes') - "
	c.Want(refused+"there can be at most 1000 prefixes", "CONFIG", "SET", "metrics-prefixes", many(1001))
	c.Want(refused+"argument must be UTF-8 text, as the labels of metrics are", "CONFIG", "SET", "metrics-prefixes", "a\xff")
	c.Want("OK", "CONFIG", "SET", "metrics-prefixes", "")
	if _, text := s.send("/metrics", ""); strings.Contains(text, "_prefix_") {
		t.Error("there are metrics of prefixes that are none")
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d: ", i)
	}
	return b.String()
}
