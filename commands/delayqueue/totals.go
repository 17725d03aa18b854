package delayqueue

// INFO's fields about all queues.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/histogram"
)

// info writes the queues' part of INFO's section limitkv.
func (f *family) info(w *command.InfoWriter) {
	t := w.Tally()
	var late histogram.Times
	late.Add(&f.s.Prefixes.All.Late.Times)
	most := f.s.Prefixes.All.Late.Max()
	w.Line("delay_queues", t.Kinds[engine.KindDelayQueue])
	w.Line("delay_queue_entries_waiting", t.Parts.Waiting)
	w.Line("delay_queue_entries_leased", t.Parts.Leased)
	w.Line("delay_queue_entries_delivered", late.Calls)
	w.Line("delay_queue_groups", t.Parts.Groups)
	w.Line("delay_queues_paused", t.Parts.Paused)
	w.Line("delay_queues_limited", t.Parts.Limited)
	w.Line("delay_queue_waiters", t.Waiters[engine.KindDelayQueue])
	w.Line("delay_queue_lateness_p50_usec", min(late.Percentile(50), most))
	w.Line("delay_queue_lateness_p99_usec", min(late.Percentile(99), most))
	w.Line("delay_queue_lateness_max_usec", most)
}
