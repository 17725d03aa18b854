package delayqueue

// How late entries are delivered, for INFO.

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/histogram"
	"github.com/limitkv/limitkv/engine"
)

type lateness struct {
	times histogram.Histogram
	max   atomic.Int64
}

// note counts a delivery that was so late.
func (l *lateness) note(micros int64) {
	l.times.Add(micros, 1)
	for {
		most := l.max.Load()
		if micros <= most || l.max.CompareAndSwap(most, micros) {
			return
		}
	}
}

// info writes the queues' part of INFO's section limitkv.
func (f *family) info(w *command.InfoWriter) {
	t := w.Tally()
	var late histogram.Times
	late.Add(&f.late.times)
	most := f.late.max.Load()
	w.Line("delay_queues", t.Kinds[engine.KindDelayQueue])
	w.Line("delay_queue_entries_waiting", t.Parts.Waiting)
	w.Line("delay_queue_entries_leased", t.Parts.Leased)
	w.Line("delay_queue_entries_delivered", late.Calls)
	w.Line("delay_queue_waiters", t.Waiters[engine.KindDelayQueue])
	w.Line("delay_queue_lateness_p50_usec", min(late.Percentile(50), most))
	w.Line("delay_queue_lateness_p99_usec", min(late.Percentile(99), most))
	w.Line("delay_queue_lateness_max_usec", most)
}
