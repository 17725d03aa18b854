package main

// A soak runs through its parts on a server, and reports what is worse at the end.

import (
	"testing"
	"time"
)

func TestSoak(t *testing.T) {
	target := startServer(t)
	parts, err := target.soak(&params{connections: 8, pipeline: 2, threads: 1, keys: 1000, valueBytes: 32, duration: time.Minute, requests: 2000})
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != soakParts {
		t.Fatalf("%d parts", len(parts))
	}
	if target.seq < soakParts*2000 {
		t.Errorf("%d requests", target.seq)
	}
}

func TestJudgeSoak(t *testing.T) {
	part := func(perSecond, p999, resident float64) soaked {
		return soaked{&result{PerSecond: perSecond, Latency: latencies{P999: p999}}, resident}
	}
	for _, x := range []struct {
		late soaked
		ok   bool
	}{
		{part(1000, 100, 1000), true}, {part(960, 104, 1049), true}, {part(2000, 50, 500), true},
		{part(940, 100, 1000), false}, {part(1000, 106, 1000), false}, {part(1000, 100, 1060), false},
	} {
		if err := judgeSoak(part(1000, 100, 1000), x.late); (err == nil) != x.ok {
			t.Errorf("%+v: %v", x.late, err)
		}
	}
}
