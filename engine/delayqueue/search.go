package delayqueue

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/limitkv/limitkv/engine/table"
)

// Search finds entries of a queue as they were when it began, a few at a time, while the queue changes: as an Image does, an
// entry that it has not come to is looked at before it changes or goes, and one that is new where it is is passed over. A
// queue has any number of them.
type Search struct {
	q     *Queue
	match func(id []byte) bool
	count int

	mu    sync.Mutex // the queue may be under another key by now, and so under another lock
	over  bool
	ahead section
	found []spot
	early []spot // what was found before its turn
	noted map[table.Record]struct{}
}

// spot is an entry that was found, and where.
type spot struct {
	in  place
	at  int64
	seq uint64
	Entry
}

func spotOf(r table.Record, now int64) spot {
	return spot{placeOf(r), itemOf(r).at, seqOf(r), entry(r, now)}
}

func (a spot) compare(b spot) int {
	return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
}

// Search begins to look for the first count entries of a state whose ids match, from an id on, if there is one, in the
// order of Peek. It reports false if no entry of the state has that id. End follows.
func (q *Queue) Search(state State, now int64, from []byte, count int, match func(id []byte) bool) (l *Search, ok bool) {
	ahead, ok := q.section(state, now, from)
	if !ok {
		return nil, false
	}
	ahead.next = ahead.next.bound()
	l = &Search{q: q, match: match, count: count, ahead: ahead}
	q.searches = append(q.searches, l)
	return l, true
}

// bound is an item at the same place, with a record of its own: the entry may go.
func (it item) bound() item {
	if it.record.None() {
		return it
	}
	r := newRecord(nil, nil, nil)
	binary.LittleEndian.PutUint64(r.Value()[headSeq:], seqOf(it.record))
	return item{it.at, r}
}

// Next looks at some entries. It reports false when there is nothing more to find.
func (l *Search) Next(entries int) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more = l.ahead.pass(l.q, func(it item) bool {
		if entries == 0 || len(l.found) == l.count {
			return false
		}
		entries--
		if _, noted := l.noted[it.record]; !noted && l.match(it.record.Key()) {
			l.found = append(l.found, spotOf(it.record, l.ahead.now))
		}
		return true
	})
	if more {
		l.ahead.next = l.ahead.next.bound()
	}
	return more && len(l.found) < l.count
}

// End ends it, and returns what was found. attached tells that whoever calls it has the queue still: else another one may
// be changing it.
func (l *Search) End(attached bool) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.noted = true, nil
	if attached {
		l.q.searches = slices.DeleteFunc(l.q.searches, func(of *Search) bool { return of == l })
	}
	all := append(l.found, l.early...)
	l.found, l.early = nil, nil
	slices.SortFunc(all, spot.compare)
	entries := make([]Entry, min(l.count, len(all)))
	for i := range entries {
		entries[i] = all[i].Entry
	}
	return entries
}

// keep is called before a record is taken out of its trees. It reports whether the look is over.
func (l *Search) keep(r table.Record) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return true
	}
	if _, noted := l.noted[r]; noted {
		delete(l.noted, r)
		return false
	}
	if l.ahead.ahead(r) && l.match(r.Key()) {
		if l.early = append(l.early, spotOf(r, l.ahead.now)); len(l.early) > 2*l.count { // the last ones are not needed
			slices.SortFunc(l.early, spot.compare)
			clear(l.early[l.count:])
			l.early = l.early[:l.count]
		}
	}
	return false
}

// note is called when a record is put somewhere.
func (l *Search) note(r table.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
	case l.noted == nil:
		l.noted = map[table.Record]struct{}{r: {}}
	default:
		l.noted[r] = struct{}{}
	}
}
