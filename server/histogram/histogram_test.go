package histogram

// The histogram's buckets, and its percentiles.

import (
	"math/rand/v2"
	"testing"
)

// Buckets cover all times without gaps, with the stated precision.
func TestHistogramBuckets(t *testing.T) {
	for i := 1; i < buckets; i++ {
		lo, hi := bucketTop(i-1)+1, bucketTop(i)
		if hi < lo || bucketOf(lo) != i || bucketOf(hi) != i {
			t.Fatalf("bucket %d is from %d to %d, but these are in %d and %d", i, lo, hi, bucketOf(lo), bucketOf(hi))
		}
		if float64(hi-lo) > 0.0625*float64(lo) {
			t.Fatalf("bucket %d from %d to %d is too wide", i, lo, hi)
		}
	}
	if bucketOf(-1) != 0 || bucketOf(1<<62) != buckets-1 {
		t.Error("times out of range have no bucket")
	}
}

// Percentiles are close to those of the sorted times.
func TestHistogramPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	times := &Times{}
	for range 900 { // 100 took less than a microsecond
		h.Add(1+r.Int64N(1000), 1)
	}
	times.Add(&h)
	times.Complete(1000)
	for _, c := range []struct {
		p      float64
		lo, hi int64
	}{{5, 0, 0}, {10, 0, 0}, {50, 380, 510}, {99, 950, 1055}, {100, 980, 1055}} {
		if got := times.Percentile(c.p); got < c.lo || got > c.hi {
			t.Errorf("p%v = %d, not between %d and %d", c.p, got, c.lo, c.hi)
		}
	}
	var sum int64
	times.Each(func(_, n int64) { sum += n })
	if sum != 1000 {
		t.Errorf("%d times are counted", sum)
	}
}
