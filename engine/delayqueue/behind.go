// This file is one worker an id: an entry that is added while it is leased does not come
// twice. Its new version waits behind the lease, the last one of several, until that is over
// by whatever ends it; then it takes the entry's place, at its own time. It is a record of the
// table like others, under a name that no id can have, in a tree of its own.

package delayqueue

import "github.com/limitkv/limitkv/engine/table"

// behindMark ends the name of a record that is behind another.
const behindMark = '#'

// keyOf is the name of a record in the table.
func keyOf(id []byte, in place) []byte {
	if in != behind {
		return id
	}
	return append(id[:len(id):len(id)], behindMark)
}

// idOf is the id of a record.
func idOf(r table.Record) []byte {
	id := r.Key()
	if placeOf(r) == behind {
		id = id[:len(id)-1]
	}
	return id
}

// Behind is how many entries that are leased have a new version.
func (q *Queue) Behind() int {
	if q.behind == nil {
		return 0
	}
	return q.behind.Len()
}

// behindOf is the new version of an entry, none if there is none.
func (q *Queue) behindOf(id []byte) table.Record {
	if q.Behind() == 0 {
		return table.Record{}
	}
	return q.table.Get(keyOf(id, behind))
}

// precedes tells whether something can be behind the entry with an id: it is leased, or was until it failed for good.
func (q *Queue) precedes(id []byte) bool {
	r := q.find(id, 0)
	return !r.None() && placeOf(r) != waiting
}

// taken tells whether an entry that is to be added again is with a worker and unique: its work may be done in a moment.
func taken(r table.Record, x *Extra) bool {
	if r.None() || placeOf(r) != leased {
		return false
	}
	if x != nil && x.UniqueMicros > 0 {
		return true
	}
	is := extraOf(r)
	return is.UniqueMicros > 0
}

// addBehind is add for an id whose entry is leased.
func (q *Queue) addBehind(now int64, id, payload []byte, dueMicros int64, attempt uint32, x *Extra) {
	old := q.behindOf(id)
	if x != nil || !old.None() && hasExtra(old) || q.scheduleOf(id) != nil {
		if x == nil {
			x = &Extra{}
		}
		dueMicros = x.putOff(old, now, dueMicros)
		x.Occurrence = q.scheduleOf(id) != nil
	}
	r := newRecord(keyOf(id, behind), payload, x.Append(nil))
	if old.None() {
		q.table.Add(r)
	} else {
		q.take(old)
		q.table.Replace(old, r)
	}
	setAttempt(r, attempt)
	q.put(r, behind, dueMicros)
}

// dropBehind forgets the new version of an entry.
func (q *Queue) dropBehind(id []byte) {
	if r := q.behindOf(id); !r.None() {
		q.take(r)
		q.table.Delete(r.Key())
	}
}

// succeed has the new version of an entry, which is in no tree, take its place. It reports whether there is one.
func (q *Queue) succeed(r table.Record) bool {
	next := q.behindOf(r.Key())
	if next.None() {
		return false
	}
	q.take(next)
	extra, payload := split(next)
	n := newRecord(r.Key(), payload, extra)
	setAttempt(n, max(attemptOf(r), attemptOf(next)))
	due := dueAt(next)
	q.table.Delete(next.Key())
	q.table.Replace(r, n)
	q.put(n, waiting, due)
	return true
}
