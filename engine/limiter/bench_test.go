package limiter

import (
	"strconv"
	"testing"
)

// One call on an existing limiter; the time moves on by a microsecond each.
func BenchmarkTake(b *testing.B) {
	for _, words := range []string{
		"GCRA 100 1000", "GCRA 100 60000 BURST 20", "GCRA 7000000 1000", "LOG 100 1000", "LOG 10000 1000",
		"WINDOW 100 1000", "FIXED 100 1000", "GCRA 100 1000 FIXED 9999 60000",
	} {
		b.Run(words, func(b *testing.B) {
			p := New(nil, rulesOf(b, words), false)
			b.ReportAllocs()
			now := start
			for b.Loop() {
				now += 1000
				p, _, _ = Take(p, now, 1, Try)
			}
			b.ReportMetric(float64(len(p)), "bytes")
		})
	}
}

// A call that must wait for much of a long log.
func BenchmarkLogWait(b *testing.B) {
	for _, n := range []int64{10, 1000, 10_000} {
		b.Run(strconv.FormatInt(n, 10), func(b *testing.B) {
			p := New(nil, []Rule{{Algorithm: Log, Count: n, PeriodMicros: 60 * second}}, false)
			for i := range n {
				p, _, _ = Take(p, start+i*1000, 1, Try)
			}
			for b.Loop() {
				p, _, _ = Take(p, start+n*1000, n/2, Peek)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	rules := rulesOf(b, "GCRA 100 60000")
	var p []byte
	b.ReportAllocs()
	for b.Loop() {
		p = New(p[:0], rules, false)
	}
}

func BenchmarkHasRules(b *testing.B) {
	rules := rulesOf(b, "GCRA 100 60000 BURST 20")
	p := New(nil, rules, false)
	for b.Loop() {
		if !HasRules(p, rules) {
			b.Fatal("no")
		}
	}
}
