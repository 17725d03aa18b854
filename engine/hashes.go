package engine

// Small hashes: plain bytes beside their key, as a string's are, since there are millions of them. The bytes are a hash's
// list (engine/hash) and what room the allocator gives behind it. A command that reads works on a hash made over these
// bytes; one that writes too, and what has become of the hash is stored where the change of its key is told (count). A
// hash that is long, large or has fields with deadlines is an object, and never goes back.

import (
	"unsafe"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
)

// inlineHashMax is the longest list kept beside its key. A longer one has room of its own to grow into.
const inlineHashMax = 1024

// openHash is the hash that a command works on.
type openHash struct {
	work  hash.Hash
	entry Entry // over whose bytes it is, none for a key that is yet to be made
	key   []byte
	bin   uint8     // in which the entry is counted
	open  bool      // what becomes of it is to be stored
	room  []byte    // where a list is made that is new or needs more room
	read  hash.Hash // what another one that is only read is made
}

// PlainHash tells whether the entry is a hash in plain bytes.
func (e Entry) PlainHash() bool { return e.h.kind == KindHash && e.h.flags&flagObject == 0 }

// plainFields is how many fields a hash in plain bytes has.
func (e Entry) plainFields() int { return packed.Count(e.raw()) / 2 }

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

// ReadHash is Hash for who reads. The hash is valid until another one is read.
func (v *View) ReadHash(e Entry) *hash.Hash { return e.Hash(&v.hash.read) }

// EditHash is the hash under a key, of which e is the entry, that a command is going to change. It is changed when Changed
// tells so, not after that. The memory of key must not change until Forget.
func (v *View) EditHash(key []byte, e Entry) *hash.Hash {
	v.StoreHash()
	o := &v.hash
	h := e.Hash(&o.work)
	if h == &o.work {
		o.entry, o.key, o.bin, o.open = e, key, e.bin(), true
		v.objects = true
	}
	return h
}

// NewHash is a hash for a key that is missing, as EditHash is for one that is there. The key is made when the change is told.
func (v *View) NewHash(key []byte) *hash.Hash {
	v.StoreHash()
	o := &v.hash
	o.work.Begin(o.ample())
	o.entry, o.key, o.open = Entry{}, key, true
	v.objects = true
	return &o.work
}

// HashRoom is the room (hash.Limits) for the hash that the command works on, nil if that is an object.
func (v *View) HashRoom() []byte {
	if !v.hash.open {
		return nil
	}
	return v.hash.ample()
}

func (o *openHash) ample() []byte {
	if o.room == nil {
		o.room = make([]byte, inlineHashMax)
	}
	return o.room
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
		v.putHash(o.key, h, 0) // an empty one, too: the events of a hash whose fields all came too late begin with its making
		return
	}
	b := old.raw()
	lp, ok := h.Plain()
	stays := h.In(b)
	if !stays && ok && len(lp) <= len(b) && len(lp) >= len(b)/2 {
		copy(b, lp)
		stays = true
	}
	hash, s := v.locate(o.key)
	t := &s.tables[v.DB]
	if bin := old.bin(); bin != o.bin { // it was changed in place, at first or in all
		t.counts.sizes[KindHash-1][o.bin]--
		t.counts.sizes[KindHash-1][bin]++
	}
	if stays {
		return
	}
	d := old.dueRef()
	e := v.hashEntry(o.key, h, d != nil)
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
	words = words[:cap(words)] // with the room that the allocator gives anyway
	e := layBytes(words, KindHash, key, len(lp)+8*len(words)-int(size), false, withDue)
	copy(e.raw(), lp)
	return e
}
