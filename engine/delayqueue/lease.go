// This file is the life of an entry from delivery on: taken or leased, done,
// failed, given more time, run out.
package delayqueue

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/table"
)

// Pop delivers up to max due entries, earliest first, and returns how many: fn
// gets each as it is handed out. With a lease the entry stays, hidden until
// the lease ends; without one (0) it is removed.
func (q *Queue) Pop(now, leaseMicros int64, max int, fn func(Entry)) int {
	n := 0
	for ; n < max; n++ {
		first, ok := q.trees[waiting].Min()
		if !ok || first.at > now {
			break
		}
		q.trees[waiting].PopMin()
		r := first.record
		attempt := attemptOf(r) + 1
		binary.LittleEndian.PutUint32(r.Value()[headAttempt:], attempt)
		if leaseMicros > 0 {
			q.put(r, leased, now+leaseMicros)
		} else {
			q.table.Delete(r.Key())
		}
		e := entry(r, now)
		if leaseMicros == 0 {
			e.State = Ready
		}
		fn(e)
	}
	q.totals.Delivered += int64(n)
	return n
}

// held is the leased entry with an id, if its lease has not run out by now.
func (q *Queue) held(id []byte, attempt, now int64) table.Record {
	r := q.find(id, attempt)
	if r.None() || placeOf(r) != leased || itemOf(r).at <= now {
		return table.Record{}
	}
	return r
}

// Ack removes a leased entry: its work is done.
func (q *Queue) Ack(id []byte, attempt, now int64) bool {
	r := q.held(id, attempt, now)
	if r.None() {
		return false
	}
	q.take(r)
	q.table.Delete(r.Key())
	q.totals.Acked++
	return true
}

// ByBackoff as a delay is the queue's backoff.
const ByBackoff int64 = -1

// Nack puts a leased entry back, due after a delay; or, if it has been tried
// often enough or dead says so, among the dying.
func (q *Queue) Nack(id []byte, attempt, now, delayMicros int64, dead bool) bool {
	r := q.held(id, attempt, now)
	if r.None() {
		return false
	}
	q.totals.Nacked++
	q.take(r)
	if dead || q.exhausted(r) {
		q.put(r, dying, now)
		return true
	}
	if delayMicros == ByBackoff {
		delayMicros = q.settings.backoff(tries(r))
	}
	q.put(r, waiting, now+delayMicros)
	return true
}

// tries is how often an entry was delivered since it was added or replaced.
func tries(r table.Record) int64 {
	return int64(attemptOf(r) - binary.LittleEndian.Uint32(r.Value()[headBase:]))
}

func (q *Queue) exhausted(r table.Record) bool {
	s := &q.settings
	return s.Tries > 0 && s.Dead != "" && tries(r) >= s.Tries
}

// backoff is the wait after a number of failures.
func (s *Settings) backoff(failures int64) int64 {
	wait := s.BackoffMicros
	for ; failures > 1 && 0 < wait && wait < s.BackoffMaxMicros; failures-- {
		wait *= 2
	}
	return min(wait, s.BackoffMaxMicros)
}

// Touch gives a leased entry until a time, or lets a waiting one fall due then.
func (q *Queue) Touch(id []byte, attempt, now, untilMicros int64) bool {
	r := q.find(id, attempt)
	switch {
	case r.None() || placeOf(r) == dying:
		return false
	case placeOf(r) == leased:
		if itemOf(r).at <= now {
			return false
		}
		q.take(r)
		q.put(r, leased, untilMicros)
	case attempt != 0: // that lease is over
		return false
	default:
		q.take(r)
		q.put(r, waiting, untilMicros)
	}
	return true
}

// NextDue is when Settle has something to do next, a lease having ended, in Unix
// milliseconds; 0 if none is out.
func (q *Queue) NextDue() int64 {
	if first, ok := q.trees[leased].Min(); ok {
		return max((first.at+999)/1000, 1)
	}
	return 0
}

// Settle ends up to max leases that have run out by now: their entries are due
// again, at the time when the lease ended, or dying. It returns how many, and
// whether nothing is left to keep.
func (q *Queue) Settle(now int64, max int, _ func(part []byte)) (served int, empty bool) {
	for ; served < max; served++ {
		first, ok := q.trees[leased].Min()
		if !ok || first.at > now {
			break
		}
		q.trees[leased].PopMin()
		if r := first.record; q.exhausted(r) {
			q.put(r, dying, first.at)
		} else {
			q.put(r, waiting, first.at)
		}
	}
	q.totals.Expired += int64(served)
	return served, q.Empty()
}

// Dying is how many entries wait to be moved to the dead-letter queue.
func (q *Queue) Dying() int { return q.trees[dying].Len() }

// Forwarding tells whether there are dying entries.
func (q *Queue) Forwarding() bool { return q.Dying() > 0 }

// TakeDying takes up to max dying entries out, in order of their death, for the
// dead-letter queue.
func (q *Queue) TakeDying(max int, fn func(Entry)) int {
	n := 0
	for ; n < max; n++ {
		first, ok := q.trees[dying].PopMin()
		if !ok {
			break
		}
		q.table.Delete(first.record.Key())
		fn(entry(first.record, first.at))
	}
	q.totals.Dead += int64(n)
	return n
}
