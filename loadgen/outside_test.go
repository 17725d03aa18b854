package main

// The table of valkey-benchmark is parsed correctly, and an incomplete one is refused.

import (
	"strings"
	"testing"
)

func TestOutsideRate(t *testing.T) {
	for text, want := range map[string]float64{
		"\"test\",\"rps\",\"avg_latency_ms\"\n\"GET key:__rand_int__\",\"99800.40\",\"0.284\"\n": 99800.40,
		"\"test\",\"rps\"\n\"SET a\",\"b\",\"5.5\"\n":                                            5.5,
	} {
		if got, err := outsideColumn(text, "rps"); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "\"test\",\"rps\"", "\"a\",\"b\"\n\"1\",\"2\"", "\"test\",\"x\",\"rps\"\n\"1\"", "\"test\",\"rps\"\n\"SET\",\"many\""} {
		if got, err := outsideColumn(text, "rps"); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got, err := outsideColumn("\"test\",\"rps\",\"p50_latency_ms\"\n\"SET a,b\",\"99.5\",\"0.284\"\n", "p50_latency_ms"); err != nil || got != 0.284 {
		t.Error(got, err)
	}
	if got := (&row{outside: []outsideResult{{PerSecond: 30_000, CPU: 2}, {PerSecond: 10_000, CPU: 4}, {PerSecond: 15_000, CPU: 5}}}).confirmed(); got != "2.00 (30 / 10 / 15 k), CPU 0.50" {
		t.Error(got)
	}
}

// Loads for valkey-benchmark contain no holes of our own patterns, and name scripts that are loaded.
func TestOutsideLoads(t *testing.T) {
	loads := 0
	for _, w := range workloads() {
		if w.outside == nil {
			continue
		}
		o := &setup{keys: w.keys, value: "v", shas: map[string]string{}}
		for _, name := range []string{"filter", "limit2", "consume", "lock", "unlock", "limiter", "zpopbyscore", "rlock", "runlock", "fairlock", "runfairlock",
			"loop", "loop_argument", "undeclared", "undeclared_loop"} {
			o.shas[name] = "sha"
		}
		load := w.outside(o)
		if len(load.commands) == 0 {
			t.Errorf("%s: no command", w.name)
		}
		for _, command := range load.commands {
			for i, arg := range command {
				if arg == "" || strings.Contains(arg, "#") || i == 1 && command[0] == "EVALSHA" && arg != "sha" {
					t.Errorf("%s: %q", w.name, command)
				}
			}
		}
		loads++
	}
	if loads < 20 {
		t.Errorf("valkey-benchmark can send %d workloads", loads)
	}
}
