package engine

// Small hashes and sorted sets: plain bytes beside their key, like a string's, since there are millions of them. The
// bytes are those that the structure itself uses while it is small, and the spare room that the allocator gives
// behind them. A command works on a structure that is made over these bytes. If it changes the structure, the result
// is stored when the change of the key is reported (recount). A structure that is long, large or has fields with
// deadlines is an object, and never becomes plain bytes again.

import (
	"unsafe"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/zset"
)

// plainMax is the most bytes that are stored beside a key. A larger value has its own memory, in which it can grow.
const plainMax = 1024

// structure is a value that can be in plain bytes.
type structure interface {
	Over(b []byte)              // makes it the structure in these bytes, which may have spare room behind them
	Begin(room []byte)          // makes it empty, with room to grow in
	In(b []byte) bool           // tells whether it still uses these bytes and no others
	Plain() (b []byte, ok bool) // returns its bytes, if they are plain
	Len() int
}

// Work is memory for structures over plain bytes, one of each kind.
type Work struct {
	hash hash.Hash
	zset zset.Set
}

func (w *Work) of(k Kind) structure {
	if k == KindHash {
		return &w.hash
	}
	return &w.zset
}

// edit is the structure that a command changes.
type edit struct {
	Work
	kind  Kind
	entry Entry // the entry whose bytes it uses, zero for a key that is yet to be made
	key   []byte
	bin   uint8  // the bin in which the entry is counted
	open  bool   // it may have changed, and must be stored
	room  []byte // memory for a structure that is new or needs more room
	read  Work   // for structures that are only read
	was   []byte // in builds for tests: the bytes of the entry before
}

// fitsBytes tells whether values of a kind are structures that can be in plain bytes.
func (k Kind) fitsBytes() bool { return k == KindHash || k == KindZSet }

// InBytes tells whether the entry is a structure in plain bytes.
func (e Entry) InBytes() bool { return e.h.kind.fitsBytes() && e.h.flags&flagObject == 0 }

// plainLen is how many elements a structure in plain bytes has.
func (e Entry) plainLen() int {
	if e.h.kind == KindHash {
		return packed.Count(e.raw()) / 2
	}
	return zset.PlainLen(e.raw())
}

// Hash is the hash under an entry, nil if there is none: the object, or work, which is made over the entry's bytes.
func (e Entry) Hash(work *hash.Hash) *hash.Hash {
	switch {
	case e.h == nil || e.h.kind != KindHash:
		return nil
	case e.h.flags&flagObject != 0:
		return e.object().obj.(*hash.Hash)
	}
	work.Over(e.raw())
	return work
}

// ZSet is Hash for a sorted set.
func (e Entry) ZSet(work *zset.Set) *zset.Set {
	switch {
	case e.h == nil || e.h.kind != KindZSet:
		return nil
	case e.h.flags&flagObject != 0:
		return e.object().obj.(*zset.Set)
	}
	work.Over(e.raw())
	return work
}

// ReadHash is Hash for readers. The hash is valid until another one is read.
func (v *View) ReadHash(e Entry) *hash.Hash { return e.Hash(&v.edit.read.hash) }

// ReadZSet is ZSet for readers. The sorted set is valid until another one is read.
func (v *View) ReadZSet(e Entry) *zset.Set { return e.ZSet(&v.edit.read.zset) }

// EditHash is the hash under a key, for a command that is about to change it; e is the key's entry. Changed stores
// the result: the hash must not be changed after that. The memory of key must not change until Forget.
func (v *View) EditHash(key []byte, e Entry) *hash.Hash {
	v.StoreEdit()
	h := e.Hash(&v.edit.hash)
	if h == &v.edit.hash {
		v.begun(key, e, KindHash)
	}
	return h
}

// EditZSet is EditHash for a sorted set.
func (v *View) EditZSet(key []byte, e Entry) *zset.Set {
	v.StoreEdit()
	z := e.ZSet(&v.edit.zset)
	if z == &v.edit.zset {
		v.begun(key, e, KindZSet)
	}
	return z
}

func (v *View) begun(key []byte, e Entry, kind Kind) {
	o := &v.edit
	o.kind, o.entry, o.key, o.bin, o.open = kind, e, key, e.bin(), true
	v.objects = true
	if v.KS.Strict {
		o.was = append(o.was[:0], e.raw()...)
	}
}

// NewHash is EditHash for a key that is missing. The key is made when the change is reported.
func (v *View) NewHash(key []byte) *hash.Hash {
	v.beginNew(key, KindHash)
	return &v.edit.hash
}

// NewZSet is NewHash for a sorted set.
func (v *View) NewZSet(key []byte) *zset.Set {
	v.beginNew(key, KindZSet)
	return &v.edit.zset
}

func (v *View) beginNew(key []byte, kind Kind) {
	v.StoreEdit()
	o := &v.edit
	o.of(kind).Begin(o.ample())
	o.kind, o.entry, o.key, o.open = kind, Entry{}, key, true
	v.objects = true
}

// EditRoom is the memory for the structure that the command changes (hash.Limits, zset.Limits), nil if the structure
// is an object.
func (v *View) EditRoom() []byte {
	if !v.edit.open {
		return nil
	}
	return v.edit.ample()
}

func (o *edit) ample() []byte {
	if o.room == nil {
		o.room = make([]byte, plainMax)
	}
	return o.room
}

// StoreEdit stores the structure that the command changes. A command that reports the change need not call it, unless
// it changes other keys, or the deadline of this one, before that.
func (v *View) StoreEdit() {
	o := &v.edit
	if !o.open {
		return
	}
	o.open = false
	v.doubt = true
	x, old := o.of(o.kind), o.entry
	if old.h == nil {
		v.putPlain(o.key, o.kind, x, 0) // also an empty one: the events of a hash whose fields all came too late begin with its making
		return
	}
	b := old.raw()
	now, ok := x.Plain()
	stays := x.In(b)
	if !stays && ok && len(now) <= len(b) && len(now) >= len(b)/2 {
		copy(b, now)
		stays = true
	}
	hash, s := v.locate(o.key)
	t := &s.tables[v.DB]
	if bin := old.bin(); bin != o.bin { // it was changed in place, at least at first
		t.counts.sizes[o.kind-1][o.bin]--
		t.counts.sizes[o.kind-1][bin]++
	}
	if stays {
		return
	}
	d := old.dueRef()
	e := v.plainEntry(o.key, o.kind, x, d != nil)
	e.h.access, e.h.freq = old.h.access, old.h.freq
	if d != nil {
		*e.dueRef() = due{at: d.at, node: d.node, db: d.db}
		if d.node != 0 {
			s.wheel.nodes[d.node].ref = unsafe.Pointer(e.h)
		}
		d.node = 0
	}
	if e.h.flags&flagObject != 0 {
		e.object().measure()
		v.objects = true
	}
	v.replace(t, t.find(hash, o.key), e)
}

// putPlain stores a structure, which is copied or taken over.
func (v *View) putPlain(key []byte, kind Kind, x structure, deadline int64) Entry {
	e := v.put(v.plainEntry(key, kind, x, deadline != 0), deadline)
	if e.h.flags&flagObject != 0 {
		if d, ok := e.object().obj.(Settler); ok && d.NextDue() != 0 {
			v.InnerDue(e)
		}
	}
	return e
}

// plainEntry makes an entry of a structure: in plain bytes if possible, else an object. withDue makes room for a
// deadline.
func (v *View) plainEntry(key []byte, kind Kind, x structure, withDue bool) Entry {
	b, ok := x.Plain()
	if !ok || len(b) > plainMax {
		return newObjectEntry(kind, key, v.edit.own(x))
	}
	size := headerSize + uintptr(len(key)+len(b))
	if withDue {
		size += dueSize
	}
	words := append([]uint64(nil), make([]uint64, (size+7)/8)...)
	words = words[:cap(words)] // includes the room that the allocator gives anyway
	e := layBytes(words, kind, key, len(b)+8*len(words)-int(size), false, withDue)
	copy(e.raw(), b)
	return e
}

// own returns a structure that the next command does not reuse.
func (o *edit) own(x structure) structure {
	switch x {
	case &o.hash:
		h := o.hash
		return &h
	case &o.zset:
		z := o.zset
		return &z
	}
	return x
}
