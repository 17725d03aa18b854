// This file looks at a queue without changing it.

package delayqueue

import (
	"sort"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/engine/table"
)

// NextHead is when the first waiting entry falls or fell due.
func (q *Queue) NextHead() (dueMicros int64, ok bool) {
	first, ok := q.trees[waiting].Min()
	if q.rank != nil {
		if other, has := q.rank.byTime.Min(); has && (!ok || other.at < first.at) {
			return other.at, true
		}
	}
	return first.at, ok
}

// NextDelivery is when there is something to deliver: now, or later if nothing else changes.
func (q *Queue) NextDelivery(now int64) (atMicros int64, ok bool) {
	switch {
	case q.settings.Paused:
		return 0, false
	case q.rank == nil:
		return q.NextHead()
	}
	return q.nextRanked(now)
}

// Len is how many entries there are, whatever their state.
func (q *Queue) Len() int { return q.table.Len() - q.Remembered() - q.Behind() }

// Look shows the entry with an id.
func (q *Queue) Look(id []byte, now int64) (e Entry, ok bool) {
	r := q.find(id, 0)
	if r.None() {
		return e, false
	}
	return entry(r, now), true
}

// Paused says whether delivery is paused.
func (q *Queue) Paused() bool { return q.settings.Paused }

// Timed says that something besides leases may end by itself: entries that expire, ids and groups that are forgotten.
func (q *Queue) Timed() bool {
	return q.done != nil || q.late != nil || q.rank != nil && q.rank.idleDue() != 0
}

// Remembered is how many ids are remembered after their entries were done.
func (q *Queue) Remembered() int {
	if q.done == nil {
		return 0
	}
	return q.done.Len()
}

// Parts is how many entries are leased, how many are not, and how many groups there are.
func (q *Queue) Parts() (waiting, leased, groups int) {
	leased = q.Count(Leased, 0)
	return q.Len() - leased, leased, q.Groups()
}

// Count is how many entries are in a state at now.
func (q *Queue) Count(state State, now int64) int {
	switch state {
	case Ready:
		return q.ready(now)
	case Delayed:
		return q.Stored(Delayed) - q.ready(now)
	case Any:
		return q.Len()
	}
	return q.Stored(state)
}

// ready counts the entries that are due, by bisection.
func (q *Queue) ready(now int64) int {
	n := countUntil(q.trees[waiting], now)
	if q.rank != nil {
		n += countUntil(q.rank.byTime, now)
	}
	return n
}

func countUntil(t *btree.BTreeG[item], now int64) int {
	return sort.Search(t.Len(), func(i int) bool {
		it, _ := t.GetAt(i)
		return it.at > now
	})
}

// ascend calls fn with the items of a place from a pivot on, in order.
func (q *Queue) ascend(in place, pivot item, fn func(item) bool) {
	if in != waiting || q.rank == nil {
		q.trees[in].Ascend(pivot, fn)
		return
	}
	// Merge two trees in order.
	other := q.rank.byTime.Iter()
	more := other.Seek(pivot)
	defer other.Release()
	on := true
	q.trees[in].Ascend(pivot, func(it item) bool {
		for ; more && before(other.Item(), it); more = other.Next() {
			if on = fn(other.Item()); !on {
				return false
			}
		}
		on = fn(it)
		return on
	})
	for ; on && more; more = other.Next() {
		on = fn(other.Item())
	}
}

// Peek shows up to max entries of a state: waiting ones in order of their due times, leased ones in the order in which
// their leases end. Any shows first the waiting, then the leased, then the dying entries.
func (q *Queue) Peek(state State, now int64, max int, fn func(Entry)) int {
	n := 0
	if max > 0 {
		q.Walk(state, now, nil, func(e Entry) bool {
			fn(e)
			n++
			return n < max
		})
	}
	return n
}

// Walk is Peek without a maximum, until fn returns false. If from is not nil, it begins at the entry with that id, and
// returns false if no entry of the state has it.
func (q *Queue) Walk(state State, now int64, from []byte, fn func(Entry) bool) (found bool) {
	s, found := q.section(state, now, from)
	if found {
		s.pass(q, func(it item) bool { return fn(entry(it.record, now)) })
	}
	return found
}

// section is a range of a queue's entries, in order of their places and times, without those already passed.
type section struct {
	state    State
	now      int64
	in, last place
	next     item // no entry before it is ahead
}

// section is all entries of a state or, if from is not nil, those from the entry with that id on. It returns false if
// no entry of the state has the id.
func (q *Queue) section(state State, now int64, from []byte) (s section, found bool) {
	s = section{state: state, now: now, last: dying}
	switch state {
	case Any:
	case Ready:
		s.last = waiting
	case Delayed:
		s.last, s.next.at = waiting, now+1
	default:
		s.in = keptAt(state)
		s.last = s.in
	}
	if from == nil {
		return s, true
	}
	r := q.find(from, 0)
	if r.None() {
		return s, false
	}
	if e := entry(r, now); state != Any && e.State != state {
		return s, false
	}
	s.in, s.next = placeOf(r), itemOf(r)
	return s, true
}

// ahead tells whether an entry is in the range and not passed yet.
func (s *section) ahead(r table.Record) bool {
	in, it := placeOf(r), itemOf(r)
	switch {
	case in < s.in || in > s.last || s.state == Ready && it.at > s.now:
		return false
	}
	return in > s.in || !before(it, s.next)
}

// pass calls fn with the items ahead until it returns false; that item stays ahead.
func (s *section) pass(q *Queue, fn func(item) bool) (more bool) {
	for ; s.in <= s.last; s.in, s.next = s.in+1, (item{}) {
		q.ascend(s.in, s.next, func(it item) bool {
			if s.state == Ready && it.at > s.now {
				return false
			}
			if more = !fn(it); more {
				s.next = it
			}
			return !more
		})
		if more {
			return true
		}
	}
	return false
}
