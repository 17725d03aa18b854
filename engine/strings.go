package engine

// Strings: the verbs that write plain bytes. A value that fits is written in place.

import "unsafe"

// PutString stores a string, replacing whatever is under the key. deadline is in Unix milliseconds, 0 = none. A value
// that is the text of an int64 is stored as an integer.
func (v *View) PutString(key, value []byte, deadline int64) Entry {
	if n, ok := parseCanonicalInt(value); ok {
		return v.PutInt(key, n, deadline)
	}
	return v.putBytes(KindString, key, value, deadline)
}

// PutBytes stores a value of a kind that is plain bytes (a limiter's state).
func (v *View) PutBytes(kind Kind, key, value []byte, deadline int64) Entry {
	return v.putBytes(kind, key, value, deadline)
}

func (v *View) putBytes(kind Kind, key, value []byte, deadline int64) Entry {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := v.lapse(s, t, t.find(hash, key))
	v.doubt = true
	if i >= 0 {
		// The commonest write: a value of the same length over the old one.
		e := t.at(i)
		v.keep(e)
		const form = flagInt | flagObject
		if e.h.kind == kind && e.h.flags&form == 0 && int(e.h.valLen) == len(value) &&
			(deadline == 0 || e.h.flags&flagDeadline != 0) {
			if kind == KindLock {
				v.leftLock(e)
			}
			copy(e.raw(), value)
			e.h.flags &^= flagRaw
			v.touch(e)
			if e.h.flags&flagDeadline != 0 {
				v.arm(s, e, deadline)
			}
			if kind == KindLimiter {
				e.markIdle()
				v.NoteIdle(e)
			}
			return e
		}
		if big := e.bigString(); big != nil && kind == KindString && len(value) > inlineStringMax && big.fits(len(value)) {
			big.b = append(big.b[:0], value...)
			e.h.flags &^= flagRaw
			v.grown += t.recount(e.object())
			v.touch(e)
			if deadline != 0 || e.dueRef().at != 0 {
				v.arm(s, e, deadline)
			}
			return e
		}
	}
	var e Entry
	if len(value) > inlineStringMax {
		e = newObjectEntry(kind, key, &bigString{b: append([]byte(nil), value...)}) // append does not clear the memory before it copies
	} else {
		e = newBytesEntry(kind, key, len(value), false, deadline != 0 || kind == KindLock)
		copy(e.raw(), value)
	}
	switch kind {
	case KindLimiter:
		e.markIdle()
	case KindLock:
		e.h.flags |= flagInnerDue
	}
	v.enter(hash, s, i, e, deadline)
	return e
}

// TakeString is PutString for bytes that the caller gives away. They are never written to, since others may still
// read them.
func (v *View) TakeString(key, value []byte, deadline int64) Entry {
	if len(value) <= inlineStringMax {
		return v.PutString(key, value, deadline)
	}
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := v.lapse(s, t, t.find(hash, key))
	v.doubt = true
	if i >= 0 {
		v.keep(t.at(i))
	}
	e := newObjectEntry(KindString, key, &bigString{b: value, shared: 1})
	v.enter(hash, s, i, e, deadline)
	return e
}

// bigString is the long string under an entry, nil if it has none.
func (e Entry) bigString() *bigString {
	if e.h.kind != KindString || e.h.flags&flagObject == 0 {
		return nil
	}
	return e.object().obj.(*bigString)
}

// fits tells whether a string of so many bytes may be written over this one. It may not if that wastes more than an
// eighth.
func (x *bigString) fits(n int) bool {
	return x.shared == 0 && n <= cap(x.b) && cap(x.b)-n <= cap(x.b)/8
}

// Share returns the bytes of a string of more than inlineStringMax. They stay as they are when the string changes,
// until the caller calls done in Held.Do.
func (v *View) Share(e Entry) (b []byte, done func()) {
	big := e.bigString()
	big.shared++
	b = big.b
	return b, func() {
		if unsafe.SliceData(big.b) == unsafe.SliceData(b) {
			big.shared--
		}
	}
}

// ShareString returns the bytes of a string of more than inlineStringMax. They never change: a change of the string
// gives it other bytes.
func (v *View) ShareString(e Entry) []byte {
	big := e.bigString()
	big.shared++
	return big.b
}

// twinBytes is the length from which a copy of a string shares its bytes, until one of the two changes.
const twinBytes = 1 << 20

// twin is a copy of the string.
func (x *bigString) twin() *bigString {
	if len(x.b) < twinBytes {
		return &bigString{b: append([]byte(nil), x.b...)}
	}
	x.shared++
	return &bigString{b: x.b[:len(x.b):len(x.b)], shared: 1}
}

// PutInt stores a string that is an integer.
func (v *View) PutInt(key []byte, n int64, deadline int64) Entry {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := v.lapse(s, t, t.find(hash, key))
	v.doubt = true
	if i >= 0 {
		e := t.at(i)
		v.keep(e)
		if e.h.flags&flagInt != 0 && (deadline == 0 || e.h.flags&flagDeadline != 0) {
			v.setInt(e, n)
			v.touch(e)
			if e.h.flags&flagDeadline != 0 {
				v.arm(s, e, deadline)
			}
			return e
		}
	}
	e := newBytesEntry(KindString, key, 0, true, deadline != 0)
	*e.intRef() = n
	v.enter(hash, s, i, e, deadline)
	return e
}

// SetInt changes the integer of an entry that has one. Its deadline and all else stay.
func (v *View) SetInt(e Entry, n int64) { v.doubt = true; v.setInt(e, n) }

// lapse removes the key in slot i if it has expired: what replaces it is then a new key, and both changes are
// reported. It returns the slot of the key, -1 after a removal.
func (v *View) lapse(s *shard, t *table, i int) int {
	if i < 0 {
		return i
	}
	e := t.at(i)
	if e.h.flags&(flagDeadline|flagObject) == 0 {
		return i
	}
	at := e.dueRef().at
	if at == 0 || at >= v.Now/1000 || v.expiry()&(expiryFollows|expiryPaused) != 0 {
		return i
	}
	doubt := v.doubt
	v.expire(s, e)
	v.doubt = doubt
	return -1
}

// enter puts a new entry into slot i, or into a new slot if i is negative.
func (v *View) enter(hash uint64, s *shard, i int, e Entry, deadline int64) {
	v.doubt = true
	t := &s.tables[v.DB]
	e.h.access = uint32(v.Now / 1e6)
	e.h.freq = lfuInitial(v.Now)
	if e.h.flags&flagObject != 0 {
		e.object().measure()
	}
	if i >= 0 {
		old := t.at(i)
		v.inherit(e, old)
		v.drop(s, old)
		v.replace(t, i, e)
	} else {
		v.insert(t, hash, e)
		v.Notify(EventNew, "new", e.Key())
	}
	if deadline != 0 {
		v.arm(s, e, deadline)
	} else if e.h.flags&flagInnerDue != 0 {
		v.rearm(s, e)
	}
	if e.h.flags&flagIdle != 0 {
		v.sweepFor(s, e)
	}
}

// EditString makes the string under key n bytes long: it adds zeros at the end, or cuts it. It returns all bytes; the
// caller may write those at index from and above, until the next write to the key. It makes the key if that is
// missing; the deadline stays.
func (v *View) EditString(key []byte, from, n int) []byte {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := t.find(hash, key)
	v.doubt = true
	var old []byte
	var deadline int64
	freq := lfuInitial(v.Now)
	if i >= 0 {
		e := t.at(i)
		v.keep(e)
		freq = e.h.freq
		deadline = e.Deadline()
		if e.h.flags&flagObject != 0 {
			big := e.object().obj.(*bigString)
			big.resize(from, n)
			v.grown += t.recount(e.object())
			return big.b
		}
		if e.h.flags&flagInt == 0 && int(e.h.valLen) == n {
			e.h.flags |= flagRaw
			return e.raw()
		}
		old = e.Bytes(make([]byte, 0, 20))
	}
	var e Entry
	if n > inlineStringMax {
		big := &bigString{b: old}
		big.resize(0, n)
		e = newObjectEntry(KindString, key, big)
	} else {
		e = newBytesEntry(KindString, key, n, false, deadline != 0)
		copy(e.raw(), old)
	}
	e.h.flags |= flagRaw
	v.enter(hash, s, i, e, deadline)
	e.h.freq = freq // the look-up before counted the access
	return e.raw()
}

// resize makes the string n bytes long. The caller will write only at index from and above.
func (x *bigString) resize(from, n int) {
	if had := len(x.b); n <= cap(x.b) && (x.shared == 0 || from >= had) {
		x.b = x.b[:n]
		if n > had {
			clear(x.b[had:])
		}
		return
	}
	b := make([]byte, n, n+n/4)
	copy(b, x.b)
	x.b, x.shared = b, 0
}
