package hash

// Deadlines of fields.

import "github.com/limitkv/limitkv/engine/packed"

// PrepareDeadlines must be called by every command that may set a deadline, even if it sets none: as in Redis,
// "listpack" becomes "listpackex".
func (h *Hash) PrepareDeadlines() {
	if h.large != nil {
		return
	}
	var lp []byte
	var fs, vs packed.Scratch
	for p := packed.First(h.lp); p < packed.End(h.lp); {
		field := packed.Get(h.lp, p, &fs)
		p = packed.Next(h.lp, p)
		value := packed.Get(h.lp, p, &vs)
		p = packed.Next(h.lp, p)
		lp = packed.Append(lp, packed.String(field), packed.String(value), packed.Number(0))
	}
	h.lp, h.large = lp, withDeadlines
}

// deadlineAt returns the deadline of the field at p of a packed hash with deadlines.
func (h *Hash) deadlineAt(p int) int64 {
	p = packed.Next(h.lp, p)
	due, _ := packed.Int(h.lp, packed.Next(h.lp, p))
	return due
}

// Deadline returns a field's deadline, 0 if it has none, and whether there is such a field.
func (h *Hash) Deadline(field []byte) (millis int64, ok bool) {
	if !h.packed() {
		return h.large.deadline(field)
	}
	p := packed.Find(h.lp, packed.First(h.lp), field, h.stride()-1)
	if p < 0 || h.large == nil {
		return 0, p >= 0
	}
	return h.deadlineAt(p), true
}

// SetDeadline sets a field's deadline, or removes it if millis is 0, and reports whether there is such a field.
func (h *Hash) SetDeadline(field []byte, millis int64) bool {
	if !h.packed() {
		return h.large.setDeadline(field, millis)
	}
	if h.large == nil && millis == 0 {
		return h.Exists(field)
	}
	h.PrepareDeadlines()
	p := packed.Find(h.lp, packed.First(h.lp), field, 2)
	if p < 0 {
		return false
	}
	if h.deadlineAt(p) == 0 && millis == 0 {
		return true
	}
	var s packed.Scratch
	value := append([]byte(nil), packed.Get(h.lp, packed.Next(h.lp, p), &s)...)
	h.lp = packed.Delete(h.lp, p, 3)
	p = packed.End(h.lp)
	if millis != 0 {
		// Redis puts it before the first one that is due at the same time or later.
		for p = packed.First(h.lp); p < packed.End(h.lp); {
			valueAt := packed.Next(h.lp, p)
			dueAt := packed.Next(h.lp, valueAt)
			if due, _ := packed.Int(h.lp, dueAt); due == 0 || due >= millis {
				break
			}
			p = packed.Next(h.lp, dueAt)
		}
	}
	h.lp = packed.Insert(h.lp, p, packed.String(field), packed.String(value), packed.Number(millis))
	return true
}

// NextDue returns the earliest deadline, 0 if no field has one. It takes constant time.
func (h *Hash) NextDue() (millis int64) {
	switch {
	case h.large == nil:
		return 0
	case h.large == withDeadlines:
		if h.Len() == 0 {
			return 0
		}
		return h.deadlineAt(packed.First(h.lp))
	case len(h.large.due) == 0:
		return 0
	}
	return h.large.due[0].millis
}

// ExpireDue removes at most max fields that are due at nowMicros (unix µs), in the order of their deadlines, calls
// removed with each, and returns how many. removed must not use the hash.
func (h *Hash) ExpireDue(nowMicros int64, max int, removed func(field []byte)) int {
	now := nowMicros / 1000
	if due := h.NextDue(); due == 0 || due > now {
		return 0
	}
	if !h.packed() {
		return h.large.expireDue(now, max, removed)
	}
	n := 0
	first := packed.First(h.lp)
	p := first
	var s packed.Scratch
	for ; n < max && p < packed.End(h.lp); n++ {
		valueAt := packed.Next(h.lp, p)
		dueAt := packed.Next(h.lp, valueAt)
		if due, _ := packed.Int(h.lp, dueAt); due == 0 || due > now {
			break
		}
		removed(packed.Get(h.lp, p, &s))
		p = packed.Next(h.lp, dueAt)
	}
	h.lp = packed.DeleteRange(h.lp, first, p, 3*n)
	return n
}

// Settle removes at most max fields that are due at nowMicros, and returns how many, and whether the hash is empty. If
// gone is not nil, it is called with each. The keyspace expires fields with it.
func (h *Hash) Settle(nowMicros int64, max int, gone func(field []byte)) (removed int, empty bool) {
	if gone == nil {
		gone = func([]byte) {}
	}
	removed = h.ExpireDue(nowMicros, max, gone)
	return removed, h.Len() == 0
}
