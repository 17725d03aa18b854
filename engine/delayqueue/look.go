// This file looks at a queue without changing it.
package delayqueue

import (
	"sort"

	"github.com/tidwall/btree"
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

// Paused says that nothing is delivered.
func (q *Queue) Paused() bool { return q.settings.Paused }

// Timed says that more than leases may end by itself: entries that expire, ids that
// are forgotten.
func (q *Queue) Timed() bool { return q.done != nil || q.late != nil }

// Remembered is how many ids are remembered though their entries are done.
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
		n := q.trees[waiting].Len() - q.ready(now)
		if q.rank != nil {
			n += q.rank.byTime.Len()
		}
		return n
	case Leased:
		return q.trees[leased].Len()
	case Dying:
		return q.trees[dying].Len()
	}
	return q.Len()
}

// ready counts what is due, by bisection.
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
	// Two trees in one order.
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

// Peek shows up to max entries of a state: waiting ones in order of their due
// times, leased ones in order of the ends of their leases, and Any first those
// that wait, then those leased, then those dying.
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

// Walk is Peek without a maximum, until fn returns false; from an id on, if there is
// one. It reports false if no entry of the state has it.
func (q *Queue) Walk(state State, now int64, from []byte, fn func(Entry) bool) (found bool) {
	begin, pivot := waiting, item{}
	if from != nil {
		r := q.find(from, 0)
		if r.None() {
			return false
		}
		if e := entry(r, now); state != Any && e.State != state {
			return false
		}
		begin, pivot = placeOf(r), itemOf(r)
	}
	for in := begin; in <= dying; in++ {
		switch {
		case state == Any:
		case (state == Ready || state == Delayed) && in == waiting:
		case state == Leased && in == leased, state == Dying && in == dying:
		default:
			continue
		}
		if state == Delayed && pivot.record.None() {
			pivot.at = now + 1
		}
		more := true
		q.ascend(in, pivot, func(it item) bool {
			if state == Ready && it.at > now {
				return false
			}
			more = fn(entry(it.record, now))
			return more
		})
		if !more {
			break
		}
		pivot = item{}
	}
	return true
}
