package delayqueue

import (
	"slices"

	"github.com/limitkv/limitkv/engine/table"
)

// Image passes on the entries of a queue as they were when it began, a few at a time, while the queue changes. It goes
// through the trees, one state after the other, each in order of time. An entry that it has not reached is passed on
// before it changes or is removed. Records that are put into a tree after the beginning are noted and skipped.
type Image struct {
	q  *Queue
	fn func(Saved)
	in place // the tree that it reads
	// at is the last item that it has passed in that tree, with its own copy of the record; at first the zero item,
	// which is before all.
	at    item
	left  [behind + 1]int // entries of each tree that are not passed on yet
	noted map[table.Record]struct{}
}

// Image begins an image of the queue. fn is called with each entry once: by Next, and, then in any order, by functions
// that change the queue. A queue has one image at a time: a new one ends the last.
func (q *Queue) Image(fn func(Saved)) *Image {
	m := &Image{q: q, fn: fn, noted: map[table.Record]struct{}{}}
	for in, state := range SavedStates {
		m.left[in] = q.Stored(state)
	}
	q.image = m
	return m
}

// Next passes on about count entries of a state. It returns false when there are no more: then the caller continues
// with the next of SavedStates.
func (m *Image) Next(state State, count int) (more bool) {
	in := keptAt(state)
	if m.q.image != m || in < m.in {
		return false
	}
	if in != m.in {
		m.in, m.at = in, item{}
	}
	seen := 0
	m.q.eachFrom(in, m.at, func(it item) bool {
		if m.left[in] == 0 {
			return false
		}
		if seen == count {
			more = true
			return false
		}
		if !before(m.at, it) {
			return true // it is where the last piece ended
		}
		seen++
		if _, noted := m.noted[it.record]; !noted {
			m.fn(savedOf(it.record))
			m.left[in]--
		}
		m.at = it
		return true
	})
	if !m.at.record.None() {
		m.at.record = m.at.record.Clone() // the entry may be removed
	}
	if !more && in == behind {
		m.End()
	}
	return more
}

// End ends the image without the rest.
func (m *Image) End() {
	if m.q.image == m {
		m.q.image = nil
	}
}

// keep is called before a record is removed from its trees.
func (q *Queue) keep(r table.Record) {
	if q.searches != nil {
		q.searches = slices.DeleteFunc(q.searches, func(l *Search) bool { return l.keep(r) })
	}
	m := q.image
	if m == nil {
		return
	}
	if _, noted := m.noted[r]; noted {
		delete(m.noted, r) // until it is put somewhere again
		return
	}
	in := placeOf(r)
	if in < m.in || in == m.in && !before(m.at, itemOf(r)) {
		return
	}
	m.fn(savedOf(r))
	m.left[in]--
}

// eachFrom calls fn with the items of a place from a pivot on, in order.
func (q *Queue) eachFrom(in place, pivot item, fn func(item) bool) {
	switch {
	case in < remembered:
		q.ascend(in, pivot, fn)
	case in == remembered && q.done != nil:
		q.done.Ascend(pivot, fn)
	case in == behind && q.behind != nil:
		q.behind.Ascend(pivot, fn)
	}
}
