// This file adapts a queue to a clock that was set back.

package delayqueue

import (
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/table"
)

// SetBack adapts a queue to a clock that was set by byMicros, whole milliseconds below 0, and now shows now. What lasts
// for a length of time ends as soon as it would have: leases, the wait of an entry that was delivered before, the
// memory of ids, schedules with EVERY, and the limiters of groups. What was due stays due, in the same order. Other
// entries, and the occurrences of a CRON, are due at times of the wall clock, so they do not move.
func (q *Queue) SetBack(now, byMicros int64) {
	for _, in := range []place{waiting, leased, remembered} {
		for _, r := range q.lasting(in, now-byMicros) {
			q.shift(r, in, max(itemOf(r).at+byMicros, 1))
		}
	}
	for _, plan := range q.Schedules() {
		if s := q.schedules[string(plan.ID)]; s.EveryMicros > 0 {
			q.moveSchedule(s, now, byMicros)
		}
	}
	if q.rank == nil {
		return
	}
	for _, g := range q.rank.groups {
		if q.bucketOf(g) == nil {
			continue
		}
		limiter.SetBack(g.bucket, now, byMicros)
		switch g.state {
		case groupHeld:
			q.rank.promote(g)
		case groupIdle:
			q.refresh(g)
		}
	}
}

// lasting returns the records of a place that SetBack moves, in order. was is what the clock showed before.
func (q *Queue) lasting(in place, was int64) (list []table.Record) {
	q.eachFrom(in, item{}, func(it item) bool {
		if in != waiting || it.at <= was || tries(it.record) > 0 {
			list = append(list, it.record)
		}
		return true
	})
	return list
}

// moveSchedule moves the times of a schedule. An occurrence that waits and was never delivered is named after its time,
// so another one takes its place.
func (q *Queue) moveSchedule(s *schedule, now, by int64) {
	s.BaseMicros, s.AfterMicros = max(s.BaseMicros+by, 0), max(s.AfterMicros+by, 0)
	r := q.present(s)
	if r.None() || placeOf(r) != waiting || tries(r) > 0 || dueAt(r) <= now {
		return
	}
	defer q.unpin(q.pin(r))
	q.withdraw(s)
	q.schedules[string(s.ID)] = s
	q.spawn(s, now)
}
