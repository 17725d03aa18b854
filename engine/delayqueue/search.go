package delayqueue

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/limitkv/limitkv/engine/table"
)

// Search finds entries of a queue as they were when it began, a few at a time, while the queue changes. As in an Image,
// an entry that it has not reached is looked at before it changes or is removed, and a record that is put into a tree
// later is skipped. A queue can have any number of searches.
type Search struct {
	q     *Queue
	match func(id []byte) bool
	count int

	mu    sync.Mutex // the queue may be under another key by now, and so under another lock
	over  bool
	ahead section
	found []spot
	early []spot // entries found before their turn
	noted map[table.Record]struct{}
}

// spot is a found entry, and its place.
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

// Search begins a search for the first count entries of a state whose ids match, in the order of Peek. If from is not
// nil, it starts at the entry with that id, and returns false if no entry of the state has it. The caller must call
// End.
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

// bound is an item at the same position with a record of its own, because the entry may be removed.
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

// End ends the search and returns what it found. attached says that the caller still has the queue. Otherwise someone
// else may be changing it, so End leaves it alone.
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

// keep is called before a record is removed from its trees. It returns whether the search is over.
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

// note is called when a record is put into its trees.
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
