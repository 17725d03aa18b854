// Package hash, internal to the server, is Redis's hash: fields with values, each of which can have a deadline.
//
// Most hashes are small, and there are millions of them. So a small one is a Redis listpack (package packed): one
// allocation without pointers, searched from its start. Fields with deadlines come first, in the order of the
// deadlines, so the next one due is the first. A large hash is a table (package table) of records, with a heap of the
// deadlines beside it. Each record stores its place in the heap. That takes 20 bytes for each field with a deadline. A
// search tree of deadlines was rejected: it would take many times that, and pointers.
//
// Deadlines are unix time in milliseconds, as in the field commands; 0 is none. A field is due from its millisecond on.
// The structure itself never hides a field that is due: call ExpireDue first.
//
// Byte arguments are copied and must not alias the hash. Results may alias it until the next write.
package hash

import (
	"unsafe"

	"github.com/limitkv/limitkv/engine/packed"
)

// Limits are the sizes up to which a hash stays packed: hash-max-listpack-entries and hash-max-listpack-value.
type Limits struct {
	MaxPackedFields int // fields
	MaxPackedBytes  int // bytes of a field or a value
	// Room is where a list moves that outgrows its memory, if it fits there. The caller must then copy the list from
	// there.
	Room []byte
}

// DefaultLimits are Redis's.
var DefaultLimits = Limits{MaxPackedFields: 512, MaxPackedBytes: 64}

// Hash maps fields to values. The zero value is an empty hash, packed.
type Hash struct {
	lp []byte // field, value and, withDeadlines, deadline; in turn
	// large is nil while the hash is packed without deadlines, withDeadlines while it is packed with them.
	large *large
}

// withDeadlines marks a packed hash that has or once had a deadline: "listpackex". It is always empty.
var withDeadlines = &large{}

func (h *Hash) packed() bool { return h.large == nil || h.large == withDeadlines }

// stride is how many elements of the list belong to a field.
func (h *Hash) stride() int {
	if h.large == nil {
		return 2
	}
	return 3
}

// Len returns the number of fields.
func (h *Hash) Len() int {
	if h.packed() {
		return packed.Count(h.lp) / h.stride()
	}
	return h.large.table.Len()
}

// Encoding is OBJECT ENCODING's answer: listpack, listpackex or hashtable. It never changes back.
func (h *Hash) Encoding() string {
	switch h.large {
	case nil:
		return "listpack"
	case withDeadlines:
		return "listpackex"
	}
	return "hashtable"
}

// MemoryUsage returns the bytes that the hash takes.
func (h *Hash) MemoryUsage() int {
	n := int(unsafe.Sizeof(*h)) + cap(h.lp)
	if !h.packed() {
		n += h.large.memoryUsage()
	}
	return n
}

// MemoryEstimate is MemoryUsage, which takes a constant time.
func (h *Hash) MemoryEstimate() int { return h.MemoryUsage() }

// Listpack returns the list of a packed hash, which DUMP writes as it is: in turn a field, its value and, if deadlines
// is true, its deadline. It is nil if the hash is large.
func (h *Hash) Listpack() (lp []byte, deadlines bool) { return h.lp, h.large == withDeadlines }

// Over makes h a packed hash without deadlines on memory that is not its own: b begins with a list and has room after
// it. Changes that fit are written there.
func (h *Hash) Over(b []byte) { *h = Hash{lp: packed.Over(b)} }

// Begin makes h an empty hash whose list can grow in room.
func (h *Hash) Begin(room []byte) { *h = Hash{lp: packed.Begin(room)} }

// In tells whether the hash still uses the memory of b and no other.
func (h *Hash) In(b []byte) bool {
	return h.large == nil && h.lp != nil && unsafe.SliceData(h.lp) == unsafe.SliceData(b)
}

// Plain returns the list of a packed hash without deadlines; ok is false for other hashes.
func (h *Hash) Plain() (lp []byte, ok bool) {
	if h.large != nil {
		return nil, false
	}
	if h.lp == nil {
		return packed.Begin(make([]byte, packed.EmptyBytes)), true
	}
	return h.lp, true
}

// Get returns a field's value; it may alias the scratch.
func (h *Hash) Get(field []byte, s *packed.Scratch) (value []byte, ok bool) {
	if !h.packed() {
		r := h.large.table.Get(field)
		if r.None() {
			return nil, false
		}
		return valueOf(r), true
	}
	p := packed.Find(h.lp, packed.First(h.lp), field, h.stride()-1)
	if p < 0 {
		return nil, false
	}
	return packed.Get(h.lp, packed.Next(h.lp, p), s), true
}

// Exists reports whether the hash has the field.
func (h *Hash) Exists(field []byte) bool {
	if !h.packed() {
		return !h.large.table.Get(field).None()
	}
	return packed.Find(h.lp, packed.First(h.lp), field, h.stride()-1) >= 0
}

// Prepare must be called before a command sets several fields. Redis decides by the command's arguments, before it
// checks whether they repeat, that a hash becomes large. longest is the longest of the fields and values, total the
// bytes of all of them.
func (h *Hash) Prepare(fields, longest, total int, lim Limits) {
	if h.packed() && (fields > lim.MaxPackedFields || longest > lim.MaxPackedBytes ||
		packed.Bytes(h.lp)+total > packed.MaxBytes) {
		h.enlarge()
	}
}

// Reserve should be called before an empty hash gets several fields; pairs has fields and values in turn. A hash of 10
// fields that grows with each of them leaves five times its size to the garbage collector.
func (h *Hash) Reserve(pairs [][]byte) {
	if len(pairs) <= 2 || len(pairs) > 2*reserveFieldsMax || !h.packed() {
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		for j := 0; j < i; j += 2 {
			if len(pairs[i]) == len(pairs[j]) && string(pairs[i]) == string(pairs[j]) {
				return // their size is not known
			}
		}
	}
	size := 0
	for _, b := range pairs {
		it := packed.String(b)
		size += it.Size()
	}
	h.lp = packed.Reserve(h.lp, size)
}

// reserveFieldsMax is how many fields Reserve compares with each other.
const reserveFieldsMax = 64

// Set sets a field's value, removes its deadline, and reports whether the field is new.
func (h *Hash) Set(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, replace)
}

// SetNew sets the value of a new field, and reports whether it is new. In a table it also sets that of an existing field.
func (h *Hash) SetNew(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, onlyNew)
}

// SetKeepDeadline sets a field's value, keeps its deadline, and reports whether the field is new: HINCRBY, HSETEX
// KEEPTTL.
func (h *Hash) SetKeepDeadline(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, keepDeadline)
}

// What set does with an existing field: it replaces value and deadline, keeps the deadline, or keeps both.
const (
	replace = iota
	keepDeadline
	onlyNew
)

func (h *Hash) set(field, value []byte, lim Limits, how int) (created bool) {
	if h.packed() && (len(field) > lim.MaxPackedBytes || len(value) > lim.MaxPackedBytes ||
		len(h.lp)+len(field)+len(value) > packed.MaxBytes) {
		h.enlarge()
	}
	if !h.packed() {
		return h.large.set(field, value, how == keepDeadline)
	}
	p := packed.Find(h.lp, packed.First(h.lp), field, h.stride()-1)
	switch {
	case p >= 0 && how == onlyNew:
	case p < 0 && h.large == nil:
		f, v := packed.String(field), packed.String(value)
		h.move(f.Size()+v.Size(), lim.Room)
		h.lp = packed.Append(h.lp, f, v)
	case p < 0:
		h.lp = packed.Append(h.lp, packed.String(field), packed.String(value), packed.Number(0))
	case h.large == withDeadlines && how == replace && h.deadlineAt(p) != 0:
		// Fields without a deadline come after those with one.
		h.lp = packed.Delete(h.lp, p, 3)
		h.lp = packed.Append(h.lp, packed.String(field), packed.String(value), packed.Number(0))
	default:
		p := packed.Next(h.lp, p)
		v := packed.String(value)
		if h.large == nil {
			h.move(v.Size()-(packed.Next(h.lp, p)-p), lim.Room)
		}
		h.lp = packed.Replace(h.lp, p, v)
	}
	if h.Len() > lim.MaxPackedFields {
		h.enlarge()
	}
	return p < 0
}

// move moves the list to room if it fits there and cannot grow by so many bytes where it is.
func (h *Hash) move(more int, room []byte) {
	if n := len(h.lp) + more; n > cap(h.lp) && n <= len(room) {
		h.lp = append(room[:0], h.lp...)
	}
}

// Delete removes a field and reports whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if !h.packed() {
		return h.large.delete(field)
	}
	p := packed.Find(h.lp, packed.First(h.lp), field, h.stride()-1)
	if p < 0 {
		return false
	}
	h.lp = packed.Delete(h.lp, p, h.stride())
	return true
}

// enlarge turns a packed hash into a table.
func (h *Hash) enlarge() {
	l := &large{}
	for it := h.Iter(); it.Next(); {
		l.set(it.Field(), it.Value(), false)
		if due := it.Deadline(); due != 0 {
			l.setDeadline(it.Field(), due)
		}
	}
	h.lp, h.large = nil, l
}

// Clone returns a copy that shares nothing with h.
func (h *Hash) Clone() Hash {
	if h.packed() {
		return Hash{lp: packed.Clone(h.lp), large: h.large}
	}
	return Hash{large: h.large.clone()}
}

// Begins is the address of a small hash's memory, to prefetch it. Another goroutine may be changing the hash, so the
// address may be out of date.
//
//go:norace
func (h *Hash) Begins() *byte { return unsafe.SliceData(h.lp) }
