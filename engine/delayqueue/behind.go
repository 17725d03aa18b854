// This file gives an id to one worker at a time: an entry that is added while it is leased is not delivered twice. Its
// new version waits behind the lease; of several, only the last one does. When the lease is over, for whatever reason,
// the new version takes the entry's place, at its own time. It is a record of the table like others, in a tree of its
// own, under a name that no id can have.

package delayqueue

import "github.com/limitkv/limitkv/engine/table"

// behindMark ends the name of a record that waits behind another.
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

// Behind is how many entries have a new version that waits.
func (q *Queue) Behind() int {
	if q.behind == nil {
		return 0
	}
	return q.behind.Len()
}

// behindOf is the new version of an entry, no record if there is none.
func (q *Queue) behindOf(id []byte) table.Record {
	if q.Behind() == 0 {
		return table.Record{}
	}
	return q.table.Get(keyOf(id, behind))
}

// precedes tells whether a new version can wait behind the entry with an id: it is leased, or was until it failed for
// good.
func (q *Queue) precedes(id []byte) bool {
	r := q.find(id, 0)
	return !r.None() && placeOf(r) != waiting
}

// taken tells whether an entry that is added again is leased and unique: its worker may be about to finish.
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

// dropBehind removes the new version of an entry.
func (q *Queue) dropBehind(id []byte) {
	if r := q.behindOf(id); !r.None() {
		q.take(r)
		q.table.Delete(r.Key())
	}
}

// succeed puts the new version of an entry, which is in no tree, in its place. It returns whether there is one.
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
