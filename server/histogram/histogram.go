// Package histogram, internal to the server, counts durations: of commands, for INFO latencystats and LATENCY HISTOGRAM, and
// how late entries of delay queues are delivered.
package histogram

import (
	"math/bits"
	"sync/atomic"
)

// There is a bucket for each microsecond up to 15, then there are 16 for each power of two, so the error is at most 6 %. Times
// from 2^40 µs (12 days) on are in the last one.
const (
	subBits    = 4
	subBuckets = 1 << subBits
	timeBits   = 40
	buckets    = (timeBits - subBits + 1) * subBuckets
)

// Histogram counts times in microseconds.
type Histogram struct{ counts [buckets]atomic.Int64 }

// Add counts a time for a number of calls. For commands only times of a microsecond and more are added. Most commands are
// faster, and cost nothing here; Complete adds them by the total number of calls.
func (h *Histogram) Add(micros int64, calls int) { h.counts[bucketOf(micros)].Add(int64(calls)) }

func bucketOf(micros int64) int {
	v := uint64(min(max(micros, 0), 1<<timeBits-1))
	if v < subBuckets {
		return int(v)
	}
	e := bits.Len64(v) - 1 - subBits
	return (e+1)*subBuckets + int(v>>e) - subBuckets
}

// bucketTop returns the longest time in a bucket.
func bucketTop(i int) int64 {
	if i < subBuckets {
		return int64(i)
	}
	e := i/subBuckets - 1
	return int64(subBuckets+i%subBuckets+1)<<e - 1
}

// Times is the sum of several histograms.
type Times struct {
	Calls  int64
	counts [buckets]int64
}

// Add adds a histogram.
func (t *Times) Add(h *Histogram) {
	for i := range h.counts {
		n := h.counts[i].Load()
		t.counts[i] += n
		t.Calls += n
	}
}

// Complete sets the total number of calls. Those that no histogram has count as 0 microseconds.
func (t *Times) Complete(calls int64) {
	t.counts[0] += max(0, calls-t.Calls)
	t.Calls = calls
}

// Percentile returns the time in microseconds that p percent of the calls did not exceed.
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

// Each calls fn for each bucket that is not empty, with its longest time and its count.
func (t *Times) Each(fn func(topMicros, n int64)) {
	for i, n := range t.counts {
		if n != 0 {
			fn(bucketTop(i), n)
		}
	}
}
