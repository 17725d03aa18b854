package rdb

// Workers read the keys whose frames were found (frame.go).

import (
	"errors"
	"math"
)

// worker reads values and passes them to Enter.
type worker struct {
	l        *Loader
	items    []Item
	offset   int64  // of the first item
	integers []byte // reusable space
}

// isValue reports whether an entry of a file is a key, by its first byte.
func isValue(op byte) bool { return op < opTemplate }

// region reads a part of the file.
func (w *worker) region(r region) {
	d := decoder{
		Reader: Reader{rest: r.buf[r.begin:r.end], maxString: math.MaxInt, integers: w.integers[:0]},
		lim:    w.l.o.Limits, valkey: w.l.valkey, templates: &w.l.templates,
	}
	db, a := r.db, r.pending
	for len(d.rest) > 0 && !w.l.stopped.Load() {
		offset := r.offset + int64(r.end-r.begin-len(d.rest))
		switch op := d.Byte(); {
		case op == opSelect:
			db = int(d.Len())
		case isValue(op):
			w.key(&d, op, db, a, offset)
			a = noAttributes
		case op == opDue || op == opDueMillis || op == opFreq || op == opIdle:
			a.read(&d.Reader, op)
		default:
			f := frame{b: d.rest, valkey: d.valkey, templates: d.templates}
			f.entry(op)
			d.rest = d.rest[f.at:]
		}
	}
	w.flush()
	w.integers = d.integers
	w.l.verified.Add(d.verified)
}

// key reads a key and its value.
func (w *worker) key(d *decoder, t byte, db int, a attributes, offset int64) {
	d.repairs = nil
	key := d.String()
	value := d.rest
	v := d.value(t)
	if d.problem == problemEmpty && d.from == nil {
		f := frame{b: value, valkey: d.valkey, templates: d.templates}
		f.value(t)
		d.problem, d.rest = "", value[f.at:]
		w.l.empty.Add(1)
		if w.l.o.Passed != nil {
			w.l.o.Passed(db, key)
		}
		return
	}
	switch now := w.l.o.NowMillis; {
	case d.Failed():
		w.l.fail(offset, key, errors.New(d.problem))
		return
	case a.expire != 0 && a.expire < now:
		w.l.expired.Add(1)
		if w.l.o.Expired != nil {
			w.l.o.Expired(db, key)
		}
		return
	}
	if len(d.repairs) > 0 && w.l.o.Repaired != nil {
		w.l.o.Repaired(db, key, d.repairs)
	}
	if len(w.items) == 0 {
		w.offset = offset
	}
	w.items = append(w.items, Item{db, key, v, a.expire, a.idle, a.freq})
	if len(w.items) == batchKeys {
		w.flush()
		d.integers = d.integers[:0]
	}
}

// flush passes the items to Enter.
func (w *worker) flush() {
	if len(w.items) > 0 && !w.l.stopped.Load() {
		if err := w.l.o.Enter(w.items); err != nil {
			w.l.fail(w.offset, nil, err)
		} else {
			w.l.keys.Add(int64(len(w.items)))
		}
	}
	clear(w.items)
	w.items = w.items[:0]
}

// inline reads a long key while its bytes arrive. The key begins at a place of the buffer.
func (l *Loader) inline(at int) {
	offset := l.offset(at)
	l.passOn(at)
	d := decoder{Reader: Reader{rest: l.buf, maxString: math.MaxInt, from: &l.src}, lim: l.o.Limits, valkey: l.valkey, templates: &l.templates}
	l.src.last = l.buf
	w := worker{l: l}
	w.key(&d, d.Byte(), l.db, l.pending, offset)
	w.flush()
	l.verified.Add(d.verified)
	l.src.use(l.src.last[:len(l.src.last)-len(d.rest)])
	l.buf, l.start = d.rest, 0
	l.pending = noAttributes
	l.startPending = noAttributes
}
