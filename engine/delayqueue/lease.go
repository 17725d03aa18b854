// This file is the life of an entry from its delivery on: taken or leased, then done, failed, extended, or run out.

package delayqueue

import (
	"encoding/binary"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/engine/table"
)

// Pop delivers up to max due entries, earliest first, and returns how many. It calls fn with each as it is delivered.
// With a lease the entry stays, hidden until the lease ends; without one (0) it is removed.
func (q *Queue) Pop(now, leaseMicros int64, max int, fn func(Entry)) int {
	n := 0
	for ; n < max && !q.settings.Paused; n++ {
		var r table.Record
		if q.rank == nil {
			first, ok := q.trees[waiting].Min()
			if !ok || first.at > now {
				break
			}
			r = first.record
			q.keep(r)
			q.trees[waiting].PopMin()
			q.unlate(r)
			q.handOut(r, now, leaseMicros)
		} else {
			if r, _ = q.next(now); r.None() {
				break
			}
			q.deliver(r, now, leaseMicros)
		}
		fn(handed(r, now, leaseMicros))
	}
	count(&q.totals.Delivered, n)
	return n
}

// Take delivers the waiting entry with an id as Pop does, without checking that it is the entry's turn.
func (q *Queue) Take(id []byte, now, leaseMicros int64) bool {
	r := q.find(id, 0)
	if r.None() || placeOf(r) != waiting {
		return false
	}
	q.deliver(r, now, leaseMicros)
	count(&q.totals.Delivered, 1)
	return true
}

// handOut leases an entry that is in no tree, or removes it.
func (q *Queue) handOut(r table.Record, now, leaseMicros int64) {
	if q.schedules != nil {
		q.delivered(r, now)
	}
	q.attempt(r)
	if leaseMicros > 0 {
		q.put(r, leased, now+leaseMicros)
	} else {
		q.leave(r, now, true)
	}
}

// attempt numbers a delivery. The number distinguishes a worker's lease from earlier ones, so after the largest number
// it begins anew instead of staying the same.
func (q *Queue) attempt(r table.Record) {
	head, n := r.Value(), attemptOf(r)
	if n >= attemptMax {
		n = 0
		binary.LittleEndian.PutUint32(head[headBase:], 0)
	}
	binary.LittleEndian.PutUint32(head[headAttempt:], n+1)
}

// handed is an entry that was delivered.
func handed(r table.Record, now, leaseMicros int64) Entry {
	e := entry(r, now)
	if leaseMicros == 0 {
		e.State = Ready
	}
	return e
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
	defer q.unpin(q.pin(r))
	q.take(r)
	q.leave(r, now, true)
	count(&q.totals.Acked, 1)
	return true
}

// ByBackoff as a delay means the queue's backoff.
const ByBackoff int64 = -1

// Nack puts a leased entry back, due after a delay. If it has been tried often enough, or dead is true, it is dying
// instead. A reason, if there is one, is stored.
func (q *Queue) Nack(id []byte, attempt, now, delayMicros int64, dead bool, reason []byte) bool {
	r := q.held(id, attempt, now)
	if r.None() {
		return false
	}
	count(&q.totals.Nacked, 1)
	g := q.pin(r)
	defer q.unpin(g)
	q.take(r)
	r = q.blame(r, reason)
	if dead || q.exhausted(r) {
		q.put(r, dying, now)
		return true
	}
	if q.succeed(r) {
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

// Touch makes a lease end at a time, or a waiting entry fall due then.
func (q *Queue) Touch(id []byte, attempt, now, untilMicros int64) bool {
	r := q.find(id, attempt)
	switch {
	case r.None() || placeOf(r) == dying:
		return false
	case placeOf(r) == leased:
		if itemOf(r).at <= now {
			return false
		}
		q.shift(r, leased, untilMicros)
	case attempt != 0: // that lease is over
		return false
	default:
		q.shift(r, waiting, untilMicros)
	}
	return true
}

// shift moves an entry to another place or time.
func (q *Queue) shift(r table.Record, to place, at int64) {
	g := q.pin(r)
	q.take(r)
	q.put(r, to, at)
	q.unpin(g)
}

// first is the first item of a tree, which may be nil.
func first(t *btree.BTreeG[item]) (it item, ok bool) {
	if t == nil {
		return it, false
	}
	return t.Min()
}

// NextDue is when Settle has something to do next, in Unix milliseconds; 0 if it never has.
func (q *Queue) NextDue() int64 {
	next := int64(0)
	for _, t := range []*btree.BTreeG[item]{q.trees[leased], q.late, q.done} {
		if it, ok := first(t); ok {
			if at := max((it.at+999)/1000, 1); next == 0 || at < next {
				next = at
			}
		}
	}
	if q.rank != nil {
		if at := (q.rank.idleDue() + 999) / 1000; at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}

// Settle handles up to max events whose time has come by now, in order of time. Leases that have run out end, and their
// entries are due again at that time, or dying. Entries that nobody took in time expire. Ids are forgotten. It returns
// how many, and whether the queue is empty. It also forgets groups that have nothing left, which is not counted.
func (q *Queue) Settle(now int64, max int, _ func(part []byte)) (served int, empty bool) {
	if q.rank != nil {
		q.forgetIdle(now, max)
	}
	for ; served < max; served++ {
		lease, leaseOver := first(q.trees[leased])
		late, expired := first(q.late)
		done, forgotten := first(q.done)
		leaseOver, expired, forgotten = leaseOver && lease.at <= now, expired && late.at <= now, forgotten && done.at <= now
		switch {
		case leaseOver && (!expired || lease.at <= late.at) && (!forgotten || lease.at <= done.at):
			q.lapse(lease.record, lease.at)
		case expired && (!forgotten || late.at <= done.at):
			q.expire(late.record, now, late.at)
		case forgotten:
			q.forget(done.record)
		default:
			return served, q.Empty()
		}
	}
	return served, q.Empty()
}

// lapse ends a lease that has run out.
func (q *Queue) lapse(r table.Record, at int64) {
	count(&q.totals.Expired, 1)
	defer q.unpin(q.pin(r))
	q.take(r)
	switch {
	case q.exhausted(r):
		q.put(q.blame(r, []byte(ReasonLease)), dying, at)
	case !q.succeed(r):
		q.put(r, waiting, at)
	}
}

// expire gives up an entry that nobody took in time.
func (q *Queue) expire(r table.Record, now, at int64) {
	defer q.unpin(q.pin(r))
	q.take(r)
	count(&q.totals.Overdue, 1)
	if q.settings.Dead == "" {
		q.leave(r, now, false)
	} else {
		q.pass(r, now)
		q.put(q.blame(r, []byte(ReasonExpired)), dying, at)
	}
}

// Dying is how many entries wait to move to the dead-letter queue.
func (q *Queue) Dying() int { return q.trees[dying].Len() }

// Forwarding tells whether there are dying entries.
func (q *Queue) Forwarding() bool { return q.Dying() > 0 }

// TakeDying removes up to max dying entries, in the order of their deaths, and calls fn with each, for the dead-letter
// queue.
func (q *Queue) TakeDying(now int64, max int, fn func(Entry)) int {
	n := 0
	for ; n < max; n++ {
		first, ok := q.trees[dying].Min()
		if !ok {
			break
		}
		q.keep(first.record)
		q.trees[dying].PopMin()
		q.leave(first.record, now, false)
		fn(entry(first.record, first.at))
	}
	count(&q.totals.Dead, n)
	return n
}
