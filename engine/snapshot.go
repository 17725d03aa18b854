package engine

// Snapshots: saving the whole keyspace and restoring it, for tests. Both copy all keys under the locks of all shards
// (BenchmarkSnapshot); restoring copies because a snapshot can be restored again. Servers that do not use it pay
// nothing.

import (
	"slices"
	"unsafe"
)

// Snapshot is what a keyspace contained at one moment.
type Snapshot struct {
	shards [shardCount]savedShard
	// Keys is the number of keys in all databases. SavedMicros is when the snapshot was made, by the keyspace's
	// clock.
	Keys        int
	SavedMicros int64
}

// savedShard is what a shard contained. It never changes.
type savedShard struct {
	tables   []table // by database
	earliest int64   // sweep.earliest, in Unix milliseconds
}

// Save makes a snapshot of the keyspace. It waits for reservations, so event loops may not call it.
func (ks *Keyspace) Save() *Snapshot {
	snap := new(Snapshot)
	ks.Inspect(WholeKeyspace(), func(r *Reader) {
		snap.SavedMicros = r.Now
		for i := range ks.shards {
			s := &ks.shards[i]
			saved := savedShard{tables: make([]table, len(s.tables)), earliest: s.sweep.earliest}
			if s.sweep.active {
				saved.earliest = min(saved.earliest, s.sweep.met)
			}
			for db := range s.tables {
				if s.tables[db].used != 0 {
					saved.tables[db] = s.tables[db].twin(ks.Clone)
					snap.Keys += s.tables[db].used
				}
			}
			snap.shards[i] = saved
		}
	})
	return snap
}

// Restore makes the keyspace what it was when the snapshot was made. Watchers of a key that existed or exists now see
// it as changed. Those who wait for keys are served from the restored keys. Keys have the deadlines that they had;
// those that have passed meanwhile have been served when it returns. It waits as Save does.
func (ks *Keyspace) Restore(snap *Snapshot) {
	ks.Update(WholeKeyspace(), func(v *View) {
		v.doubt = true
		v.CountChange()
		ks.replaced()
		for i := range snap.shards {
			v.restore(&ks.shards[i], &snap.shards[i])
		}
		if v.Logging() {
			ks.Causes.Replaced(v)
			v.NoEffect() // no other effect than that
		}
	})
	for i := range ks.shards {
		ks.endOrphans(i)
	}
	ks.Sched.catchUp(ks)
}

// restore gives a shard copies of the saved entries, and all of them their places in the wheel.
func (v *View) restore(s *shard, saved *savedShard) {
	ks, db, now := v.KS, v.DB, v.Now
	tables := make([]table, len(s.tables))
	for db := range tables {
		if saved.tables[db].used != 0 {
			tables[db] = saved.tables[db].twin(ks.Clone)
		}
	}
	for k, list := range s.watches {
		v.replaced(list, s.tables[k.db].entry([]byte(k.key)).Ok(), tables[k.db].entry([]byte(k.key)))
	}
	s.wheel.reset()
	s.bound = nil
	s.sweep = sweep{earliest: saved.earliest, notBefore: s.sweep.notBefore}
	v.Now -= microsPerTick // what is due now must not wait for the next tick
	for v.DB = range tables {
		if t := &tables[v.DB]; s.tables[v.DB].segments != nil || t.segments != nil {
			s.tables[v.DB].exchange(t)
			v.grown += s.tables[v.DB].bytes - t.bytes
		}
		s.tables[v.DB].each(func(e Entry) bool {
			if d := e.dueRef(); d != nil {
				d.node = 0
				if d.at != 0 {
					s.wheel.countKey(v.DB, e, 1)
				}
				e.h.flags &^= flagInnerCounted // rearm sets it
				v.rearm(s, e)
				if e.h.flags&flagInnerDue != 0 && e.h.kind == KindDelayQueue {
					if x, ok := e.Object().(Forwarder); ok && x.Forwarding() {
						v.ForwardSoon(e.Key())
					}
				}
			}
			return true
		})
	}
	v.DB, v.Now = db, now
	ks.noteDue(s)
	for k := range s.waits {
		v.ready = append(v.ready, k)
	}
}

// twin is a copy of the entry, header included. It shares nothing with it that can change.
func (e Entry) twin(clone func(obj any) any) Entry {
	if e.h.flags&flagObject == 0 {
		words := make([]uint64, (e.Memory()+7)/8)
		copy(words, unsafe.Slice((*uint64)(unsafe.Pointer(e.h)), len(words)))
		return Entry{(*header)(unsafe.Pointer(unsafe.SliceData(words)))}
	}
	o := new(objectEntry)
	if e.h.kind.hasParts() {
		p := *e.parted()
		o = &p.objectEntry
	} else {
		*o = *e.object()
	}
	if big, ok := o.obj.(*bigString); ok {
		o.obj = &bigString{b: slices.Clone(big.b)}
	} else {
		o.obj = clone(o.obj)
	}
	return Entry{&o.header}
}
