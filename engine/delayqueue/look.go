// This file looks at a queue without changing it.
package delayqueue

import (
	"sort"

	"github.com/limitkv/limitkv/engine/table"
)

// NextHead is when the first waiting entry falls or fell due.
func (q *Queue) NextHead() (dueMicros int64, ok bool) {
	first, ok := q.trees[waiting].Min()
	return first.at, ok
}

// Len is how many entries there are, whatever their state.
func (q *Queue) Len() int { return q.table.Len() }

// Parts is how many entries are leased, and how many are not.
func (q *Queue) Parts() (waiting, leased int) {
	leased = q.Count(Leased, 0)
	return q.Len() - leased, leased
}

// Count is how many entries are in a state at now.
func (q *Queue) Count(state State, now int64) int {
	switch state {
	case Ready:
		return q.ready(now)
	case Delayed:
		return q.trees[waiting].Len() - q.ready(now)
	case Leased:
		return q.trees[leased].Len()
	case Dying:
		return q.trees[dying].Len()
	}
	return q.Len()
}

// ready counts what is due, by bisection.
func (q *Queue) ready(now int64) int {
	t := q.trees[waiting]
	return sort.Search(t.Len(), func(i int) bool {
		it, _ := t.GetAt(i)
		return it.at > now
	})
}

// Peek shows up to max entries of a state: waiting ones in order of their due
// times, leased ones in order of the ends of their leases, and Any first those
// that wait, then those leased, then those dying.
func (q *Queue) Peek(state State, now int64, max int, fn func(Entry)) int {
	n := 0
	show := func(in place, from int64, until func(item) bool) {
		q.trees[in].Ascend(item{from, table.Record{}}, func(it item) bool {
			if n == max || until != nil && until(it) {
				return false
			}
			fn(entry(it.record, now))
			n++
			return true
		})
	}
	switch state {
	case Ready:
		show(waiting, 0, func(it item) bool { return it.at > now })
	case Delayed:
		show(waiting, now+1, nil)
	case Leased:
		show(leased, 0, nil)
	case Dying:
		show(dying, 0, nil)
	default:
		show(waiting, 0, nil)
		show(leased, 0, nil)
		show(dying, 0, nil)
	}
	return n
}
