package rdb

// Delay queues are written as values of a module (module.go):
//
//	head     numbers: 1 if it has defaults; lease, tries, first and longest backoff; added, delivered, acknowledged,
//	         failed, expired, dead and removed entries; the last sequence number; string: the dead-letter queue's key
//	entries  for each state (waiting, leased, dying): number of entries, and of each entry:
//	         strings: id, payload; numbers: its time as the difference to the entry before it, modulo 2^64; sequence
//	         number; deliveries; deliveries before it was replaced; unless it waits, when it fell due
//
// That is version 1, which is still read. Version 2 adds
//
//	to the head     numbers: entries that expired, the limit of entries, 1 if it is paused, how many entries of a group
//	                may be leased; strings: the rules of groups, the key of the limiter
//	to each entry   before the time when it fell due, a string: its options as engine/delayqueue encodes them
//	another state   remembered ids, as waiting entries whose time is until when
//	after these     numbers: the last turn, the number of groups, and of each group in order: string: its name;
//	                number: its turn; string: its limiter, empty for none
//	                number of schedules, and of each: strings: id, payload, CRON, TZ, options; numbers: its period,
//	                the start of that, up to when it is past, the time of its occurrence in the queue
//
// Version 3 adds a fifth state: new versions of leased entries, as waiting entries.
//
// Times are in microseconds.

import "github.com/limitkv/limitkv/engine/delayqueue"

func (w *encoder) queue(q *delayqueue.Queue) {
	w.queueHead(q)
	for _, state := range delayqueue.SavedStates {
		w.number(uint64(q.Stored(state)))
		before := int64(0)
		q.Each(state, func(s delayqueue.Saved) {
			w.queued(&s, before)
			before = s.AtMicros
		})
	}
	w.queueTail(q)
}

// queueHead writes the part before a queue's entries.
func (w *encoder) queueHead(q *delayqueue.Queue) {
	w.len(queueID)
	h := q.Head()
	kept := uint64(0)
	if h.Kept {
		kept = 1
	}
	w.number(kept)
	for _, n := range headNumbers(&h) {
		w.number(uint64(*n))
	}
	w.number(h.Seq)
	w.item([]byte(h.Settings.Dead))
	paused := uint64(0)
	if h.Settings.Paused {
		paused = 1
	}
	w.number(uint64(h.Totals.Overdue))
	w.number(uint64(h.Settings.MaxLen))
	w.number(paused)
	w.number(uint64(h.Settings.GroupConc))
	w.item([]byte(h.Settings.GroupRules))
	w.item([]byte(h.Settings.Limit))
}

// queued writes an entry of a queue. before is the time of the entry before it in the same state, which may be later:
// the difference is read modulo 2^64.
func (w *encoder) queued(s *delayqueue.Saved, before int64) {
	w.item(s.ID)
	w.item(s.Payload)
	w.number(uint64(s.AtMicros - before))
	w.number(s.Seq)
	w.number(uint64(s.Attempt))
	w.number(uint64(s.Base))
	w.item(s.Extra)
	if s.State == delayqueue.Leased || s.State == delayqueue.Dying {
		w.number(uint64(s.DueMicros))
	}
}

// queueTail writes the part after a queue's entries.
func (w *encoder) queueTail(q *delayqueue.Queue) {
	turns, last := q.Turns()
	w.number(last)
	w.number(uint64(len(turns)))
	for _, g := range turns {
		w.item([]byte(g.Name))
		w.number(g.Turn)
		w.item(g.Bucket)
	}
	plans := q.Schedules()
	w.number(uint64(len(plans)))
	for _, s := range plans {
		for _, text := range [][]byte{s.ID, s.Payload, []byte(s.Cron), []byte(s.Zone), s.Extra.Append(nil)} {
			w.item(text)
		}
		for _, micros := range []int64{s.EveryMicros, s.BaseMicros, s.AfterMicros, s.NextMicros} {
			w.number(uint64(micros))
		}
	}
	w.byte(moduleEnd)
}

// headNumbers are the numbers of a queue's head in the order in which they are written.
func headNumbers(h *delayqueue.Head) []*int64 {
	s, t := &h.Settings, &h.Totals
	return []*int64{&s.LeaseMicros, &s.Tries, &s.BackoffMicros, &s.BackoffMaxMicros,
		&t.Added, &t.Delivered, &t.Acked, &t.Nacked, &t.Expired, &t.Dead, &t.Removed}
}

// queue reads a queue of a version.
func (r *decoder) queue(version int) *delayqueue.Queue {
	old := version == 1
	var h delayqueue.Head
	kept := r.number()
	if kept > 1 {
		r.fail(problemModule)
	}
	h.Kept = kept == 1
	for _, n := range headNumbers(&h) {
		*n = int64(r.number())
	}
	h.Seq = r.number()
	h.Settings.Dead = string(r.item())
	if !old {
		h.Totals.Overdue, h.Settings.MaxLen = int64(r.number()), int64(r.number())
		paused := r.number()
		if paused > 1 {
			r.fail(problemModule)
		}
		h.Settings.Paused = paused == 1
		h.Settings.GroupConc, h.Settings.GroupRules = int64(r.number()), string(r.item())
		h.Settings.Limit = string(r.item())
	}
	if r.Failed() {
		return nil
	}
	q, err := delayqueue.Restore(h)
	if err != nil {
		r.check("Queue", err)
		return nil
	}
	for _, state := range delayqueue.SavedStates {
		if old && state == delayqueue.Remembered || version < 3 && state == delayqueue.Behind {
			break
		}
		at := int64(0)
		for n := r.number(); n > 0 && !r.Failed(); n-- {
			s := delayqueue.Saved{State: state, ID: r.item(), Payload: r.item()}
			at += int64(r.number())
			s.AtMicros, s.Seq = at, r.number()
			attempt, base := r.number(), r.number()
			s.Attempt, s.Base, s.DueMicros = uint32(attempt), uint32(base), at
			if !old {
				s.Extra = r.item()
			}
			if state == delayqueue.Leased || state == delayqueue.Dying {
				s.DueMicros = int64(r.number())
			}
			if attempt>>32 != 0 || base>>32 != 0 {
				r.fail(problemModule)
			}
			if !r.Failed() {
				r.check("Queue", q.RestoreEntry(s))
			}
		}
	}
	if !r.Failed() {
		r.check("Queue", q.RestoreOrder())
	}
	if !old {
		r.turns(q)
		r.plans(q)
	}
	if !r.Failed() && q.Empty() {
		r.fail(problemEmpty)
	}
	return q
}

// turns reads the order of a queue's groups.
func (r *decoder) turns(q *delayqueue.Queue) {
	last, n := r.number(), r.number()
	var list []delayqueue.Group
	for ; n > 0 && !r.Failed(); n-- {
		list = append(list, delayqueue.Group{Name: string(r.item()), Turn: r.number(), Bucket: r.item()})
	}
	if !r.Failed() {
		r.check("Queue", q.RestoreTurns(list, last))
	}
}

// plans reads a queue's schedules.
func (r *decoder) plans(q *delayqueue.Queue) {
	for n := r.number(); n > 0 && !r.Failed(); n-- {
		s := delayqueue.Schedule{ID: r.item(), Payload: r.item(), Cron: string(r.item()), Zone: string(r.item())}
		x, err := delayqueue.ParseExtra(r.item())
		if s.Extra = x; err != nil {
			r.fail(problemModule)
		}
		for _, micros := range []*int64{&s.EveryMicros, &s.BaseMicros, &s.AfterMicros, &s.NextMicros} {
			*micros = int64(r.number())
		}
		if !r.Failed() {
			r.check("Queue", q.RestoreSchedule(&s))
		}
	}
}
