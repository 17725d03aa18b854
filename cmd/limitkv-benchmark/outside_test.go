package main

// The table that valkey-benchmark writes is read right, and a torn one is refused.

import "testing"

func TestOutsideRate(t *testing.T) {
	for text, want := range map[string]float64{
		"\"test\",\"rps\",\"avg_latency_ms\"\n\"GET key:__rand_int__\",\"99800.40\",\"0.284\"\n": 99800.40,
		"\"test\",\"rps\"\n\"SET a\",\"b\",\"5.5\"\n":                                            5.5,
	} {
		if got, err := outsideRate(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "\"test\",\"rps\"", "\"a\",\"b\"\n\"1\",\"2\"", "\"test\",\"x\",\"rps\"\n\"1\"", "\"test\",\"rps\"\n\"SET\",\"many\""} {
		if got, err := outsideRate(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got, err := outsideColumn("\"test\",\"rps\",\"p50_latency_ms\"\n\"SET a,b\",\"99.5\",\"0.284\"\n", "p50_latency_ms"); err != nil || got != 0.284 {
		t.Error(got, err)
	}
	if got := (&row{outside: []float64{30_000, 10_000, 15_000}}).confirmed(); got != "2.00 (30 / 10 / 15 k)" {
		t.Error(got)
	}
}
