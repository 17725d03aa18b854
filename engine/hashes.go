package engine

// Small hashes: plain bytes beside their key, as a string's are, since there are millions of them. The bytes are a hash's
// list (engine/hash) and what room the allocator gives behind it. A command that reads works on a hash made over these
// bytes; one that writes too, and what has become of the hash is stored where the change of its key is told (count). A
// hash that is long, large or has fields with deadlines is an object, and never goes back.

import (
	"unsafe"

	"github.com/limitkv/limitkv/engine/hash"
)

// inlineHashMax is the longest list kept beside its key. A longer one has room of its own to grow into.
const inlineHashMax = 1024

// openHash is the hash that a command works on.
type openHash struct {
	work  hash.Hash
	entry Entry  // over whose bytes it is, none for a key that is yet to be made
	key   []byte // of that
	bin   uint8  // in which the entry is counted
	open  bool   // what becomes of it is to be stored
	room  []byte // where the list of a new one is made
}

// PlainHash tells whether the entry is a hash in plain bytes.
func (e Entry) PlainHash() bool { return e.h.kind == KindHash && e.h.flags&flagObject == 0 }

// Hash is the hash under an entry, nil if there is none: the object, or work, which is made to be over the entry's bytes.
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

// ReadHash is Hash for who reads. The hash is valid until another one is asked for.
func (v *View) ReadHash(e Entry) *hash.Hash { return e.Hash(&v.hash.work) }

// EditHash is the hash under an entry that a command is going to change, and to tell that with Changed: by then the change
// is made.
func (v *View) EditHash(e Entry) *hash.Hash {
	o := &v.hash
	h := e.Hash(&o.work)
	if h == &o.work {
		o.entry, o.key, o.bin, o.open = e, nil, e.bin(), true
		v.objects = true
	}
	return h
}

// NewHash is a hash for a key that is missing, as EditHash is for one that is there. The key is made when the change is told.
func (v *View) NewHash(key []byte) *hash.Hash {
	o := &v.hash
	if o.room == nil {
		o.room = make([]byte, inlineHashMax)
	}
	o.work.Begin(o.room)
	o.entry, o.key, o.open = Entry{}, key, true
	v.objects = true
	return &o.work
}

// StoreHash stores what has become of the hash that the command works on. Who tells the change need not call it.
func (v *View) StoreHash() {
	o := &v.hash
	if !o.open {
		return
	}
	o.open = false
	v.doubt = true
	h, old := &o.work, o.entry
	if old.h == nil {
		v.putHash(o.key, h, 0)
		return
	}
	_, s := v.locate(old.Key())
	t := &s.tables[v.DB]
	if bin := old.bin(); bin != o.bin {
		t.counts.sizes[KindHash-1][o.bin]--
		t.counts.sizes[KindHash-1][bin]++
	}
	if h.In(old.raw()) {
		return
	}
	d := old.dueRef()
	e := v.hashEntry(old.Key(), h, d != nil)
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
	v.replace(t, t.find(HashBytes(old.Key()), old.Key()), e)
}

// putHash enters a hash, which is copied or taken over.
func (v *View) putHash(key []byte, h *hash.Hash, deadline int64) Entry {
	e := v.put(v.hashEntry(key, h, deadline != 0), deadline)
	if e.h.flags&flagObject != 0 && h.NextDue() != 0 {
		v.InnerDue(e)
	}
	return e
}

// hashEntry makes an entry of a hash: of plain bytes, with room for a deadline, if it can be.
func (v *View) hashEntry(key []byte, h *hash.Hash, withDue bool) Entry {
	lp, ok := h.Plain()
	if !ok || len(lp) > inlineHashMax {
		if h == &v.hash.work {
			h = new(hash.Hash)
			*h = v.hash.work
		}
		return newObjectEntry(KindHash, key, h)
	}
	size := headerSize + uintptr(len(key)+len(lp))
	if withDue {
		size += dueSize
	}
	words := append([]uint64(nil), make([]uint64, (size+7)/8)...)
	size = uintptr(cap(words))*8 - size // of the allocator's room
	e := layBytes(words[:cap(words)], KindHash, key, len(lp)+int(size), false, withDue)
	copy(e.raw(), lp)
	return e
}

// of tells whether it is the hash of a key.
func (o *openHash) of(key []byte) bool {
	if o.entry.h == nil {
		return string(o.key) == string(key)
	}
	return string(o.entry.Key()) == string(key)
}
