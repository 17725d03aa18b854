package engine

// Verbs over a whole database. The caller holds all shards.

import (
	"bytes"
)

// scanShardBits is how many bits of a SCAN cursor name the shard.
const scanShardBits = 6

// Scan calls fn with at least count entries, if there are so many, and returns the next cursor, 0 at the end. fn must
// not change keys. Expired keys are left out and removed. Every key that exists throughout a scan is returned.
func (v *View) Scan(cursor uint64, count int, fn func(Entry)) uint64 {
	v.whole()
	sh := int(cursor & (shardCount - 1))
	inner := cursor >> scanShardBits
	// A sparse table must not make one call long: work is bounded as well.
	var gone [][]byte
	defer func() {
		for _, key := range gone {
			v.Peek(key)
		}
	}()
	for seen, work := 0, 0; seen < count && work < count*10; work++ {
		inner = v.KS.shards[sh].tables[v.DB].scan(inner, func(e Entry) {
			seen++
			if v.gone(&v.KS.shards[sh], e) {
				gone = append(gone, bytes.Clone(e.Key()))
			} else {
				fn(e)
			}
		})
		if inner == 0 {
			if sh++; sh == shardCount {
				return 0
			}
		}
	}
	return inner<<scanShardBits | uint64(sh)
}

// Each calls fn with every key of the database that has not expired, until it
// returns false. fn must not change keys.
func (v *View) Each(fn func(Entry) bool) {
	v.whole()
	for i := range v.KS.shards {
		stop := false
		v.KS.shards[i].tables[v.DB].each(func(e Entry) bool {
			if v.gone(&v.KS.shards[i], e) {
				return true
			}
			stop = !fn(e)
			return !stop
		})
		if stop {
			return
		}
	}
}

// EachStored is Each including the keys that have expired and are not removed yet.
func (v *View) EachStored(fn func(Entry)) {
	v.whole()
	for i := range v.KS.shards {
		v.KS.shards[i].tables[v.DB].each(func(e Entry) bool {
			fn(e)
			return true
		})
	}
}

// Count is the number of keys of the database, including expired ones that are not removed yet.
func (v *View) Count() (n int) {
	v.whole()
	for i := range v.KS.shards {
		n += v.KS.shards[i].tables[v.DB].used
	}
	return n
}

// Random returns a random key, the zero Entry if there is none. next returns random numbers.
func (v *View) Random(next func() uint64) Entry {
	v.whole()
	const triesMax = 100 // while expired keys are not removed
	for tries := 0; ; tries++ {
		n := uint64(v.Count())
		if n == 0 {
			return Entry{}
		}
		at := next() % n
		for i := range v.KS.shards {
			s := &v.KS.shards[i]
			t := &s.tables[v.DB]
			if at >= uint64(t.used) {
				at -= uint64(t.used)
				continue
			}
			e := t.random(next())
			if live := v.settle(s, e); live.h != nil {
				return live
			}
			if tries >= triesMax && v.expiry()&expiryPaused != 0 {
				return e
			}
			break
		}
	}
}

// Flush removes all keys of the database. For watchers and waiters each removed key counts as changed.
func (v *View) Flush() {
	v.whole()
	v.doubt = true
	v.KS.own.flushed(v.DB)
	keys := int64(v.Count())
	for i := range v.KS.shards {
		s := &v.KS.shards[i]
		for k, list := range s.watches {
			if k.db == v.DB {
				v.replaced(list, s.tables[v.DB].entry([]byte(k.key)).Ok(), Entry{})
			}
		}
		for k := range s.waits {
			if k.db == v.DB {
				v.ready = append(v.ready, k)
			}
		}
		w := &s.wheel
		for n := wheelHeads; n < len(w.nodes); n++ {
			if ref := w.nodes[n].ref; ref != nil && (Entry{(*header)(ref)}).dueRef().db == uint16(v.DB) {
				w.remove(uint32(n))
				if w.nodes == nil {
					break
				}
			}
		}
		if s.tables[v.DB].ofKind(KindLock) > 0 {
			s.tables[v.DB].each(func(e Entry) bool {
				if e.h.kind == KindLock {
					v.leftLock(e)
					s.noteBound(e, false)
				}
				return true
			})
		}
		w.volatileKeys[v.DB], w.promisedKeys[v.DB], w.volatileHashes[v.DB] = 0, 0, 0
		v.grown -= s.tables[v.DB].bytes
		v.emptied(&s.tables[v.DB])
		s.tables[v.DB].empty()
	}
	v.CountChange()
	v.changes += max(keys-1, 0) // each key counts for save points, as in Redis
}

// Swap exchanges two databases.
func (v *View) Swap(a, b int) {
	if a == b {
		return
	}
	v.whole()
	v.doubt = true
	for i := range v.KS.shards {
		s := &v.KS.shards[i]
		s.tables[a].exchange(&s.tables[b])
		if c := v.KS.cut; c != nil && i == 0 {
			c.dbOf[a], c.dbOf[b], c.swapped = c.dbOf[b], c.dbOf[a], true
		}
		w := &s.wheel
		w.volatileKeys[a], w.volatileKeys[b] = w.volatileKeys[b], w.volatileKeys[a]
		w.promisedKeys[a], w.promisedKeys[b] = w.promisedKeys[b], w.promisedKeys[a]
		w.volatileHashes[a], w.volatileHashes[b] = w.volatileHashes[b], w.volatileHashes[a]
		for n := wheelHeads; n < len(w.nodes); n++ {
			if ref := w.nodes[n].ref; ref != nil {
				d := (Entry{(*header)(ref)}).dueRef()
				switch d.db {
				case uint16(a):
					d.db = uint16(b)
				case uint16(b):
					d.db = uint16(a)
				}
			}
		}
		for p := range s.bound {
			if d := (Entry{(*header)(p)}).dueRef(); d.node == 0 { // else it was done with the wheel
				switch d.db {
				case uint16(a):
					d.db = uint16(b)
				case uint16(b):
					d.db = uint16(a)
				}
			}
		}
		for k, list := range s.watches {
			if k.db == a || k.db == b {
				key := []byte(k.key)
				v.replaced(list, s.tables[a+b-k.db].entry(key).Ok(), s.tables[k.db].entry(key))
			}
		}
		for k := range s.waits {
			// An expired key is of no use to waiters, and is removed when somebody looks at it.
			if (k.db == a || k.db == b) && !v.over(s.tables[k.db].entry([]byte(k.key))) {
				v.ready = append(v.ready, k)
			}
		}
	}
	v.CountChange()
}
