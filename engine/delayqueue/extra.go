// This file is what an entry can have besides its id, payload and times: options that most entries do not use, and that
// cost those nothing. They are stored, packed, between the head of the record and its payload.

package delayqueue

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/table"
)

// ReasonBytesMax is the longest reason that is stored.
const ReasonBytesMax = 1024

// GroupBytesMax is the longest name of a group.
const GroupBytesMax = 512

// ReasonExpired is the reason of an entry that nobody took in time.
const ReasonExpired = "expired"

// ReasonLease is the reason of an entry whose last lease ended.
const ReasonLease = "lease ended"

// Extra has the optional fields of an entry. The zero Extra has none.
type Extra struct {
	// Group is the group in whose turn the entry is delivered. Within it the highest Prio goes first.
	Group []byte
	Prio  uint8
	// ExpireMicros is how long after its due time the entry expires if nobody took it.
	ExpireMicros int64
	// UniqueMicros is how long the id is remembered after the entry is done.
	UniqueMicros int64
	// MaxWaitMicros is how long adding the entry again can postpone it, counted from FirstMicros.
	MaxWaitMicros, FirstMicros int64
	// Reason is why the entry last failed.
	Reason []byte
	// Occurrence says that the entry is an occurrence of the schedule whose id is the entry's before the last @.
	Occurrence bool
}

// The bits that tell which fields follow.
const (
	hasGroup = 1 << iota
	hasPrio
	hasExpire
	hasUnique
	hasMaxWait
	hasReason
	isOccurrence
	fieldsEnd
)

func (x *Extra) fields() (bits byte) {
	for _, f := range []struct {
		bit byte
		on  bool
	}{
		{hasGroup, len(x.Group) > 0}, {hasPrio, x.Prio > 0}, {hasExpire, x.ExpireMicros > 0}, {hasUnique, x.UniqueMicros > 0},
		{hasMaxWait, x.MaxWaitMicros > 0}, {hasReason, len(x.Reason) > 0}, {isOccurrence, x.Occurrence},
	} {
		if f.on {
			bits |= f.bit
		}
	}
	return bits
}

// Append appends the packed form, which is empty if no field is set.
func (x *Extra) Append(dst []byte) []byte {
	if x == nil {
		return dst
	}
	bits := x.fields()
	if bits == 0 {
		return dst
	}
	dst = append(dst, bits)
	text := func(b []byte) { dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...) }
	if bits&hasGroup != 0 {
		text(x.Group)
	}
	if bits&hasPrio != 0 {
		dst = append(dst, x.Prio)
	}
	if bits&hasExpire != 0 {
		dst = binary.AppendUvarint(dst, uint64(x.ExpireMicros))
	}
	if bits&hasUnique != 0 {
		dst = binary.AppendUvarint(dst, uint64(x.UniqueMicros))
	}
	if bits&hasMaxWait != 0 {
		dst = binary.AppendUvarint(dst, uint64(x.MaxWaitMicros))
		dst = binary.AppendUvarint(dst, uint64(x.FirstMicros))
	}
	if bits&hasReason != 0 {
		text(x.Reason)
	}
	return dst
}

// ParseExtra reads the packed form; the texts alias its memory. It trusts nothing: what Append does not write is
// ErrCorrupt.
func ParseExtra(b []byte) (x Extra, err error) {
	if len(b) == 0 {
		return x, nil
	}
	bits, bad := b[0], false
	b = b[1:]
	number := func(most uint64) int64 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > most {
			bad = true
			return 0
		}
		b = b[size:]
		return int64(n)
	}
	text := func(most uint64) []byte {
		n := number(most)
		if bad || n == 0 || n > int64(len(b)) {
			bad = true
			return nil
		}
		s := b[:n:n]
		b = b[n:]
		return s
	}
	if bits&hasGroup != 0 {
		x.Group = text(GroupBytesMax)
	}
	if bits&hasPrio != 0 {
		if len(b) == 0 {
			return Extra{}, ErrCorrupt
		}
		x.Prio, b = b[0], b[1:]
	}
	if bits&hasExpire != 0 {
		x.ExpireMicros = number(SpanMax)
	}
	if bits&hasUnique != 0 {
		x.UniqueMicros = number(SpanMax)
	}
	if bits&hasMaxWait != 0 {
		x.MaxWaitMicros, x.FirstMicros = number(SpanMax), number(TimeMax)
	}
	if bits&hasReason != 0 {
		x.Reason = text(ReasonBytesMax)
	}
	x.Occurrence = bits&isOccurrence != 0
	if bad || len(b) != 0 || bits == 0 || bits >= fieldsEnd || x.fields() != bits {
		return Extra{}, ErrCorrupt
	}
	return x, nil
}

// extraSize is the size of the number in front of the packed form, which is its length.
const extraSize = 2

// newRecord makes a record with an empty head.
func newRecord(id, payload, extra []byte) table.Record {
	size := headSize + len(payload)
	if len(extra) > 0 {
		size += extraSize + len(extra)
	}
	r := table.NewRecord(id, size, false)
	v := r.Value()
	at := headSize
	if len(extra) > 0 {
		v[headPlace] = extraBit
		if extra[0]&(hasGroup|hasPrio) != 0 {
			v[headPlace] |= rankBit
		}
		binary.LittleEndian.PutUint16(v[at:], uint16(len(extra)))
		at += extraSize + copy(v[at+extraSize:], extra)
	}
	copy(v[at:], payload)
	return r
}

func hasExtra(r table.Record) bool { return r.Value()[headPlace]&extraBit != 0 }

// split returns what follows the head: the packed form and the payload.
func split(r table.Record) (extra, payload []byte) {
	v := r.Value()
	if v[headPlace]&extraBit == 0 {
		return nil, v[headSize:]
	}
	at := headSize + extraSize
	end := at + int(binary.LittleEndian.Uint16(v[headSize:]))
	return v[at:end], v[end:]
}

// extraOf is an entry's optional fields.
func extraOf(r table.Record) (x Extra) {
	if packed, _ := split(r); packed != nil {
		x, _ = ParseExtra(packed) // it was made by Append, or checked
	}
	return x
}

// revise gives an entry, which is in no tree, another payload and other optional fields, in a new record.
func (q *Queue) revise(old table.Record, payload []byte, x *Extra) table.Record {
	r := newRecord(old.Key(), payload, x.Append(nil))
	head, was := r.Value(), old.Value()
	in := head[headPlace]
	copy(head[:headSize], was[:headSize])
	head[headPlace] = in | was[headPlace]&placeMask
	q.table.Replace(old, r)
	return r
}

// blame stores why an entry, which is in no tree, failed.
func (q *Queue) blame(r table.Record, reason []byte) table.Record {
	if len(reason) == 0 {
		return r
	}
	x := extraOf(r)
	x.Reason = reason
	_, payload := split(r)
	return q.revise(r, payload, &x)
}

// leave removes an entry, which is in no tree. If its work is done, its id may be remembered. A new version that waits
// behind it takes its place.
func (q *Queue) leave(r table.Record, now int64, done bool) {
	if q.succeed(r) {
		return
	}
	if !hasExtra(r) {
		q.table.Delete(r.Key())
		return
	}
	x := extraOf(r)
	if done && x.UniqueMicros > 0 {
		m := newRecord(r.Key(), nil, nil)
		q.table.Replace(r, m)
		q.put(m, remembered, now+x.UniqueMicros)
	} else {
		q.table.Delete(r.Key())
	}
	if x.Occurrence {
		q.follow(r, now)
	}
}

// forget removes a remembered id.
func (q *Queue) forget(r table.Record) {
	q.take(r)
	q.table.Delete(r.Key())
}

// putOff is the due time of an entry that is added, perhaps again, if MAXWAIT is set now or was before.
func (x *Extra) putOff(old table.Record, now, dueMicros int64) int64 {
	first, most := now, x.MaxWaitMicros
	if !old.None() && (placeOf(old) == waiting || placeOf(old) == behind) {
		if was := extraOf(old); was.MaxWaitMicros > 0 {
			first = min(was.FirstMicros, now) // the clock may have been set back
			if most == 0 {
				most = was.MaxWaitMicros
			}
		}
	}
	if most == 0 {
		return dueMicros
	}
	x.FirstMicros, x.MaxWaitMicros = first, most
	return min(dueMicros, first+most)
}
