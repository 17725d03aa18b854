package delayqueue

// How late entries are delivered, for INFO: a histogram whose buckets are an
// eighth of a power of two wide, so what it says is at most an eighth too much.

import (
	"math/bits"
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

const (
	latenessParts   = 8
	latenessBuckets = (64 - 3) * latenessParts
)

type lateness struct {
	buckets [latenessBuckets]atomic.Int64
	max     atomic.Int64
}

// bucketOf is the bucket of a number of microseconds: those below 8 have one
// each, then there are 8 for each power of two.
func bucketOf(micros int64) int {
	if micros < latenessParts {
		return int(max(micros, 0))
	}
	power := bits.Len64(uint64(micros)) - 4 // 8..15 is power 0
	return latenessParts + power*latenessParts + int(micros>>power) - latenessParts
}

// topOf is the largest number in a bucket.
func topOf(bucket int) int64 {
	if bucket < latenessParts {
		return int64(bucket)
	}
	power := bucket/latenessParts - 1
	return int64(bucket%latenessParts+latenessParts+1)<<power - 1
}

// note counts a delivery that was so late.
func (l *lateness) note(micros int64) {
	l.buckets[bucketOf(micros)].Add(1)
	for {
		most := l.max.Load()
		if micros <= most || l.max.CompareAndSwap(most, micros) {
			return
		}
	}
}

// quantiles are the count and the lateness that the given parts per hundred of
// deliveries do not exceed.
func (l *lateness) quantiles(percents ...int64) (total int64, micros []int64) {
	var counts [latenessBuckets]int64
	for i := range counts {
		counts[i] = l.buckets[i].Load()
		total += counts[i]
	}
	for _, p := range percents {
		want, sum, at := (total*p+99)/100, int64(0), int64(0)
		for i := 0; total > 0 && i < len(counts); i++ {
			if sum += counts[i]; sum >= want {
				at = min(topOf(i), l.max.Load())
				break
			}
		}
		micros = append(micros, at)
	}
	return total, micros
}

// info writes the queues' part of INFO's section limitkv.
func (f *family) info(w *command.InfoWriter) {
	t := w.Tally()
	delivered, late := f.late.quantiles(50, 99)
	w.Line("delay_queues", t.Kinds[engine.KindDelayQueue])
	w.Line("delay_queue_entries_waiting", t.Parts.Waiting)
	w.Line("delay_queue_entries_leased", t.Parts.Leased)
	w.Line("delay_queue_entries_delivered", delivered)
	w.Line("delay_queue_waiters", t.Waiters[engine.KindDelayQueue])
	w.Line("delay_queue_lateness_p50_usec", late[0])
	w.Line("delay_queue_lateness_p99_usec", late[1])
	w.Line("delay_queue_lateness_max_usec", f.late.max.Load())
}
