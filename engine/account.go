package engine

// The memory of the keys, which maxmemory limits and INFO shows. The Go runtime cannot tell it: its heap includes
// what the collector has not freed yet, up to as much again as is in use. So memory is counted here as it is
// allocated: every table knows the memory of itself and its entries, and the keyspace the sum.
//
// An entry in plain bytes never changes its size, so it is counted when it enters its table and when it leaves. An
// object grows while it is there: its entry notes what was counted for it, and every reported change (View.Changed)
// counts it anew. A view adds its growth to the keyspace's sum after a batch of commands, not at each change, because
// all loops write to that sum.
//
// Rejected: an atomic sum that every write adds to, which costs a SET on two cores more than all the rest here; and
// the runtime's live heap at the last collection, which is seconds old and does not shrink when a key is evicted.

import "unsafe"

// KeysBytes is the memory of the keys of all databases, in the keyspace and its siblings.
func (ks *Keyspace) KeysBytes() (n int64) {
	for _, x := range ks.Sched.keyspaces() {
		n += x.bytes.Load()
	}
	return n
}

// KeysBytes is Keyspace.KeysBytes with the growth that the view has not added yet.
func (v *View) KeysBytes() int64 { return v.KS.KeysBytes() + v.grown }

// estimator is an object that knows its memory in bytes, to within some per cent, without looking at all its parts.
type estimator interface {
	MemoryEstimate() int
	Len() int
}

// countedUnit is the unit of an object's counted size, for which its entry has 32 bits.
const (
	countedUnit = 16
	countedMax  = 1<<32 - 1
)

// slotBytes is the memory of a slot of a table, its control byte included.
const slotBytes = int64(unsafe.Sizeof(uintptr(0))) + 1

// dueBytes is the memory of a deadline outside the entry: its node in the wheel.
const dueBytes = int64(unsafe.Sizeof(wheelNode{}))

// counted is the memory that is counted for an entry.
func (e Entry) counted() int64 {
	switch {
	case e.h.flags&flagObject != 0:
		return int64(e.h.valLen) * countedUnit
	case e.h.flags&flagDeadline != 0:
		return allocated(e.Memory()) + dueBytes
	}
	return allocated(e.Memory())
}

// measure notes in an object's entry its memory, its length and its parts now. It returns by how many units the
// memory has grown.
func (o *objectEntry) measure() int64 {
	n := int(unsafe.Sizeof(*o)) + len(o.key)
	switch x := o.obj.(type) {
	case *bigString:
		n += cap(x.b) + int(unsafe.Sizeof(*x))
		o.bin = binOf(len(x.b))
	case estimator:
		n += x.MemoryEstimate()
		o.bin = binOf(x.Len())
	}
	if p := o.parts(); p != nil {
		n += int(unsafe.Sizeof(*p))
		*p = partsOf(o.obj)
	}
	units := uint32(min((n+countedUnit-1)/countedUnit, countedMax))
	more := int64(units) - int64(o.valLen)
	if more != 0 {
		o.valLen = units
	}
	return more
}

// allocated is how many bytes the allocator uses for so many, to within a few per cent.
func allocated(n int) int64 {
	if n > 256 {
		n += n / 16
	}
	return int64(n+15) &^ 15
}

// insert, replace and remove are those of the table, and count the growth.
func (v *View) insert(t *table, hash uint64, e Entry) {
	v.doubt = true
	before := t.bytes
	v.made(e)
	t.insert(hash, e)
	v.grown += t.bytes - before
}

func (v *View) replace(t *table, i int, e Entry) {
	v.doubt = true
	before := t.bytes
	v.leaves(t.at(i))
	v.made(e)
	t.replace(i, e)
	v.grown += t.bytes - before
}

func (v *View) remove(t *table, i int) {
	v.doubt = true
	before := t.bytes
	v.leaves(t.at(i))
	t.remove(i)
	v.grown += t.bytes - before
}

// leaves is called before an entry leaves its table.
func (v *View) leaves(e Entry) {
	v.object = nil
	if v.edit.entry == e {
		if v.KS.Strict {
			v.edit.stored()
		}
		v.edit.open = false
	}
	v.keep(e)
}

// recount counts the object under a changed key anew. It is called if the command has found an object, which is
// mostly this one.
func (v *View) recount(key []byte) {
	if v.edit.open && string(v.edit.key) == string(key) {
		v.StoreEdit()
		return
	}
	o := v.object
	if o == nil || o.key != string(key) {
		hash, s := v.locate(key)
		t := &s.tables[v.DB]
		i := t.find(hash, key)
		if i < 0 {
			return
		}
		e := t.at(i)
		if e.h.flags&flagObject == 0 {
			return
		}
		o = e.object()
	}
	_, s := v.locate(key)
	v.grown += s.tables[v.DB].recount(o)
}

// Account adds to the keyspace's sum what the view made the keys grow by. Whoever changes keys calls it when done.
func (v *View) Account() {
	if v.KS.Strict {
		v.settled()
	}
	if v.grown != 0 {
		v.KS.bytes.Add(v.grown)
		v.grown = 0
	}
}
