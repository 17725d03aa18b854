package engine

// The large values that a cut hands over in pieces: an image of each is made little by little, under the lock of its
// shard. The object may move to another key meanwhile, and so to another shard: RENAME moves it with both shards
// held.

import (
	"sync"
	"sync/atomic"
)

// Held is an object whose image is being made.
type Held struct {
	ks    *Keyspace
	obj   any
	shard atomic.Int32
}

// helds are the objects of a keyspace whose images are being made.
type helds struct {
	n  atomic.Int32
	mu sync.Mutex // taken with shards held, or alone
	of map[any]*Held
}

// Hold notes that the image of an entry's object is being made. The shard is held.
func (v *View) Hold(e Entry) *Held {
	_, shard := locate(e.Key())
	h := &Held{ks: v.KS, obj: e.Object()}
	h.shard.Store(int32(shard))
	o := &v.KS.helds
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[any]*Held{}
	}
	o.of[h.obj] = h
	o.n.Store(int32(len(o.of)))
	return h
}

// Do calls fn under the lock of the object's shard. Without that lock nobody can change the object.
func (h *Held) Do(fn func()) {
	for there := false; !there; {
		shard := h.shard.Load()
		h.ks.Inspect(LockSet{1 << shard}, func(*Reader) {
			if there = h.shard.Load() == shard; there {
				fn()
			}
		})
	}
}

// Done says that the image is complete, or given up.
func (h *Held) Done() {
	o := &h.ks.helds
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[h.obj] == h {
		delete(o.of, h.obj)
	}
	o.n.Store(int32(len(o.of)))
}

// moved notes that an object has moved to another key. Both shards are held.
func (o *helds) moved(obj any, key []byte) {
	if o.n.Load() == 0 {
		return
	}
	_, shard := locate(key)
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.of[obj]; h != nil {
		h.shard.Store(int32(shard))
	}
}
