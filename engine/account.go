package engine

// What the keys take in memory, which maxmemory limits and INFO shows. The Go
// runtime cannot tell: what it calls the heap has in it what the collector has
// not come to yet, up to as much again as lives. So it is counted here, as it
// is allocated: every table knows what it and its entries take, and the
// keyspace the sum.
//
// An entry of plain bytes never changes its size, so it is counted when it
// enters its table and when it leaves. An object grows while it is there; its
// entry keeps what was counted for it, and every change that others are told of
// has it counted anew. What a view made the keys grow by is entered in the
// keyspace's sum, which all loops write to, not at each change but after a batch
// of commands.
//
// Rejected: an atomic sum that every write adds to, which costs a SET on two
// cores more than all else here; and the runtime's live heap at the last
// collection, which is seconds old and does not go down when a key is evicted.

import "unsafe"

// KeysBytes is what the keys of all databases take, in the keyspace and in those
// beside it.
func (ks *Keyspace) KeysBytes() (n int64) {
	for _, x := range ks.Sched.keyspaces() {
		n += x.bytes.Load()
	}
	return n
}

// KeysBytes is that of the keyspace, with what the view has made the keys grow by so far.
func (v *View) KeysBytes() int64 { return v.KS.KeysBytes() + v.grown }

// estimator is an object that knows what it takes in bytes, to within some per
// cent, without looking at all its parts.
type estimator interface {
	MemoryEstimate() int
	Len() int
}

// countedUnit is what the size of an object is counted in: its entry has 32 bits
// for it.
const (
	countedUnit = 16
	countedMax  = 1<<32 - 1
)

// slotBytes is what a table takes for a slot, its control byte included.
const slotBytes = int64(unsafe.Sizeof(uintptr(0))) + 1

// dueBytes is what a deadline takes beside the entry: its node in the wheel.
const dueBytes = int64(unsafe.Sizeof(wheelNode{}))

// counted is what an entry is counted with.
func (e Entry) counted() int64 {
	switch {
	case e.h.flags&flagObject != 0:
		return int64(e.h.valLen) * countedUnit
	case e.h.flags&flagDeadline != 0:
		return allocated(e.Memory()) + dueBytes
	}
	return allocated(e.Memory())
}

// measure notes in an object's entry what it takes now and what it has, and
// returns by how many units it takes more than was noted.
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

// allocated is what the allocator gives for so many bytes, to within a few per
// cent.
func allocated(n int) int64 {
	if n > 256 {
		n += n / 16
	}
	return int64(n+15) &^ 15
}

// insert, replace and remove are the table's, and count.
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

// recount counts the object under a changed key anew. It is called where the
// command has found an object, which is mostly this one.
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

// Account enters in the keyspace's sum what the view made the keys grow by.
// Whoever changes keys calls it when done.
func (v *View) Account() {
	if v.KS.Strict {
		v.settled()
	}
	if v.grown != 0 {
		v.KS.bytes.Add(v.grown)
		v.grown = 0
	}
}
