package hash

// The large form: a table of records and a heap of deadlines.

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/limitkv/limitkv/engine/table"
)

// large has the fields of a large hash. A record's value is the field's value. If the record is marked, the field has a
// deadline, and the place of that in the heap comes before the value.
type large struct {
	table table.Table
	due   []deadline // heap with four children each: the earliest is due[0]
}

type deadline struct {
	millis int64
	record table.Record
}

const (
	placeBytes = 4
	children   = 4
)

func valueOf(r table.Record) []byte {
	if r.Mark() {
		return r.Value()[placeBytes:]
	}
	return r.Value()
}

func placeOf(r table.Record) int { return int(binary.LittleEndian.Uint32(r.Value())) }

// record makes a record. If at is not negative, it is put at that place in the heap.
func (l *large) record(field, value []byte, at int) table.Record {
	if at < 0 {
		r := table.NewRecord(field, len(value), false)
		copy(r.Value(), value)
		return r
	}
	r := table.NewRecord(field, placeBytes+len(value), true)
	copy(r.Value()[placeBytes:], value)
	l.put(at, deadline{l.due[at].millis, r})
	return r
}

func (l *large) set(field, value []byte, keep bool) (created bool) {
	r := l.table.Get(field)
	if r.None() {
		l.table.Add(l.record(field, value, -1))
		return true
	}
	l.table.Changing(r)
	at := -1
	if r.Mark() {
		at = placeOf(r)
		if !keep {
			l.remove(at)
			at = -1
		}
	}
	if old := valueOf(r); len(old) == len(value) && r.Mark() == (at >= 0) {
		copy(old, value)
		return false
	}
	l.table.Replace(r, l.record(field, value, at))
	return false
}

func (l *large) delete(field []byte) bool {
	r := l.table.Delete(field)
	if r.None() {
		return false
	}
	if r.Mark() {
		l.remove(placeOf(r))
	}
	return true
}

func (l *large) deadline(field []byte) (millis int64, ok bool) {
	r := l.table.Get(field)
	if r.None() {
		return 0, false
	}
	return l.deadlineOf(r), true
}

func (l *large) deadlineOf(r table.Record) int64 {
	if !r.Mark() {
		return 0
	}
	return l.due[placeOf(r)].millis
}

func (l *large) setDeadline(field []byte, millis int64) bool {
	r := l.table.Get(field)
	if !r.None() {
		l.table.Changing(r)
	}
	switch {
	case r.None():
		return false
	case r.Mark() && millis != 0:
		at := placeOf(r)
		l.due[at].millis = millis
		l.down(l.up(at))
	case r.Mark():
		l.remove(placeOf(r))
		l.table.Replace(r, l.record(field, valueOf(r), -1))
	case millis != 0:
		l.due = append(l.due, deadline{millis: millis})
		at := len(l.due) - 1
		l.table.Replace(r, l.record(field, valueOf(r), at))
		l.up(at)
	}
	return true
}

func (l *large) expireDue(nowMillis int64, max int, removed func(field []byte)) int {
	n := 0
	for ; n < max && len(l.due) > 0 && l.due[0].millis <= nowMillis; n++ {
		field := l.due[0].record.Key()
		removed(field)
		l.delete(field)
	}
	return n
}

// put writes d to a place in the heap, and the place into its record.
func (l *large) put(at int, d deadline) {
	l.due[at] = d
	binary.LittleEndian.PutUint32(d.record.Value(), uint32(at))
}

// up moves the deadline at a place towards the root until none before it is later, and returns its new place.
func (l *large) up(at int) int {
	d := l.due[at]
	for at > 0 {
		parent := (at - 1) / children
		if l.due[parent].millis <= d.millis {
			break
		}
		l.put(at, l.due[parent])
		at = parent
	}
	l.put(at, d)
	return at
}

// down moves the deadline at a place away from the root until none after it is earlier.
func (l *large) down(at int) {
	d := l.due[at]
	for {
		first := children*at + 1
		if first >= len(l.due) {
			break
		}
		least := first
		for i := first + 1; i < min(first+children, len(l.due)); i++ {
			if l.due[i].millis < l.due[least].millis {
				least = i
			}
		}
		if l.due[least].millis >= d.millis {
			break
		}
		l.put(at, l.due[least])
		at = least
	}
	l.put(at, d)
}

// remove removes the deadline at a place from the heap.
func (l *large) remove(at int) {
	last := len(l.due) - 1
	d := l.due[last]
	l.due[last] = deadline{}
	l.due = l.due[:last]
	if at < last {
		l.put(at, d)
		l.down(l.up(at))
	}
	if cap(l.due) > 64 && last < cap(l.due)/4 {
		l.due = slices.Clone(l.due)
	}
}

func (l *large) memoryUsage() int {
	return int(unsafe.Sizeof(*l)) + l.table.MemoryUsage() + cap(l.due)*int(unsafe.Sizeof(deadline{}))
}

func (l *large) clone() *large {
	c := &large{due: slices.Clone(l.due)}
	c.table = l.table.Clone(func(r table.Record) {
		if r.Mark() {
			c.due[placeOf(r)].record = r
		}
	})
	return c
}
