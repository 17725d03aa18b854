// Package histogram, internal to the server, counts how long something took: commands, for INFO
// latencystats and LATENCY HISTOGRAM, and how late entries of delay queues are delivered.
package histogram

import (
	"math/bits"
	"sync/atomic"
)

// A bucket for each microsecond up to 15, then 16 for each power of two: the
// error is at most 6 %. Times beyond 2^40 µs (12 days) go into the last.
const (
	subBits    = 4
	subBuckets = 1 << subBits
	timeBits   = 40
	buckets    = (timeBits - subBits + 1) * subBuckets
)

// Histogram counts times in microseconds.
type Histogram struct{ counts [buckets]atomic.Int64 }

// Add enters a time that a number of calls took each. For commands that is only one of
// a microsecond and more: the rest, most commands, are what is missing to the number of
// calls, so that they cost nothing here.
func (h *Histogram) Add(micros int64, calls int) { h.counts[bucketOf(micros)].Add(int64(calls)) }

func bucketOf(micros int64) int {
	v := uint64(min(max(micros, 0), 1<<timeBits-1))
	if v < subBuckets {
		return int(v)
	}
	e := bits.Len64(v) - 1 - subBits
	return (e+1)*subBuckets + int(v>>e) - subBuckets
}

// bucketTop is the longest time that a bucket counts.
func bucketTop(i int) int64 {
	if i < subBuckets {
		return int64(i)
	}
	e := i/subBuckets - 1
	return int64(subBuckets+i%subBuckets+1)<<e - 1
}

// Times is what several histograms say together.
type Times struct {
	Calls  int64
	counts [buckets]int64
}

// Add adds what a histogram counted.
func (t *Times) Add(h *Histogram) {
	for i := range h.counts {
		n := h.counts[i].Load()
		t.counts[i] += n
		t.Calls += n
	}
}

// Complete sets how many calls there were, those that no histogram counted included.
func (t *Times) Complete(calls int64) {
	t.counts[0] += max(0, calls-t.Calls)
	t.Calls = calls
}

// Percentile is a time that p percent of the calls did not take longer than,
// in microseconds.
func (t *Times) Percentile(p float64) int64 {
	if t.Calls == 0 {
		return 0
	}
	need := int64(p/100*float64(t.Calls) + 0.5)
	var sum int64
	for i, n := range t.counts {
		if sum += n; sum >= max(need, 1) {
			return bucketTop(i)
		}
	}
	return 0
}

// Each calls fn with the longest time of each bucket that counted something,
// and the number.
func (t *Times) Each(fn func(topMicros, n int64)) {
	for i, n := range t.counts {
		if n != 0 {
			fn(bucketTop(i), n)
		}
	}
}
