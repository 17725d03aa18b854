package table

import (
	"math/bits"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// Image passes on the records of a table as they were when it began, a few at a time, while the table changes. It goes
// through the buckets as Scan does. The cursor with its bits reversed divides the hashes into those that it has passed
// and those to come. A record that it has not reached is passed on before it changes or is removed. Its key is noted
// while it is in the table, as are the keys of new records: noted keys are skipped later.
type Image struct {
	t      *Table
	fn     func(Record)
	cursor uint64
	noted  map[string]struct{}
}

// Image begins an image of a table. fn is called with each record once, by Next and by functions that change the table.
// A table has one image at a time: a new one ends the last.
func (t *Table) Image(fn func(Record)) *Image {
	t.image = &Image{t: t, fn: fn, noted: map[string]struct{}{}}
	return t.image
}

// Next passes on about count records. It returns false at the end.
func (m *Image) Next(count int) bool {
	t := m.t
	if t.image != m {
		return false
	}
	m.cursor = t.Scan(m.cursor, count, func(r Record) {
		key := r.Key()
		if m.done(wyhash.Sum(key)) {
			return // the table has shrunk: this bucket was two, of which one is done
		}
		if _, noted := m.noted[string(key)]; !noted {
			m.fn(r)
		}
	})
	if m.cursor == 0 {
		m.End()
	}
	return t.image == m
}

// End ends the image without the rest.
func (m *Image) End() {
	if m.t.image == m {
		m.t.image = nil
	}
}

// done tells whether the image has passed a hash.
func (m *Image) done(hash uint64) bool { return bits.Reverse64(hash) < bits.Reverse64(m.cursor) }

// note is called before a record with a key is added.
func (m *Image) note(hash uint64, key []byte) {
	if !m.done(hash) {
		m.noted[string(key)] = struct{}{}
	}
}

// keep is called before a record changes.
func (m *Image) keep(r Record) {
	key := r.Key()
	if m.done(wyhash.Sum(key)) {
		return
	}
	if _, noted := m.noted[string(key)]; !noted {
		m.fn(r)
		m.noted[string(key)] = struct{}{}
	}
}

// leaves is called before a record is removed. A key that is not there needs no note, so records that come and go take
// no memory.
func (m *Image) leaves(r Record) {
	key := r.Key()
	if m.done(wyhash.Sum(key)) {
		return
	}
	if _, noted := m.noted[string(key)]; noted {
		delete(m.noted, string(key))
	} else {
		m.fn(r)
	}
}

// Changing must be called before a record of the table is changed in place.
func (t *Table) Changing(r Record) {
	if t.image != nil {
		t.image.keep(r)
	}
}
