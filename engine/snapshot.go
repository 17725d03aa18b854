package engine

// Snapshots: the whole keyspace as it was, and back, without a copy at either
// moment. Saving freezes the shards: their tables are the snapshot's from then
// on, and also still the keyspace's. Restoring puts a snapshot's tables in place
// of the shards' own, frozen as well. A frozen shard has a holder of a special
// kind, so whoever locks it next comes to the place where a script's shards are
// waited for, and thaws it there: the shard gets a copy of its own, a 64th of the
// keyspace. Both verbs so take a time that does not depend on how many keys there
// are, a test that touches three keys pays for three shards, and where there are
// no snapshots nothing is asked that was not asked before. Commands that count keys
// or remove all of them need no copy, and lock in a way of their own (LockCold).
//
// Rejected: copying single keys when they are written, since every verb may
// change what it finds in place (the access time, an expired field) and would
// have to ask; and a table of changes over a frozen one, since every lookup would
// have to look into two.

import (
	"slices"
	"unsafe"
)

// cold is the holder of frozen shards.
var cold = &Reservation{}

const noDB = -1

// part is what a shard held when it was frozen. It does not change while a
// snapshot has it.
type part struct {
	tables []table // by database; those behind the last are empty
	// due is when the shard's wheel was to be turned, earliest that of sweep; both
	// in Unix milliseconds.
	due, earliest int64
	// volatileKeys and volatileHashes are those of the wheel, by database.
	volatileKeys, volatileHashes []int
	// bound: leases of locks are bound to connections.
	bound bool
	// snapshots counts those that have it; the shard's lock guards it.
	snapshots int
}

// Snapshot is what a keyspace held at a moment.
type Snapshot struct {
	ks     *Keyspace
	shards [shardCount]*part
	// Keys is how many keys it has, of all databases, and SavedMicros when it was
	// made, by the keyspace's clock.
	Keys        int
	SavedMicros int64

	dropped bool // the locks of all shards guard it
}

// Save makes a snapshot of the keyspace. It waits for whoever holds keys, so it
// is not for event loops.
func (ks *Keyspace) Save() *Snapshot {
	ks.waitCold()
	defer ks.unlockAll()
	snap := &Snapshot{ks: ks, SavedMicros: ks.Clock.Now()}
	for i := range ks.shards {
		s := &ks.shards[i]
		if s.holder == nil {
			s.freeze()
		}
		s.frozen.snapshots++
		snap.shards[i] = s.frozen
		for db := range s.frozen.tables {
			snap.Keys += s.frozen.tables[db].used
		}
	}
	return snap
}

// Drop gives back what the snapshot alone has. It cannot be restored after.
func (snap *Snapshot) Drop() {
	snap.ks.close()
	defer snap.ks.unlockAll()
	if !snap.dropped {
		for _, f := range snap.shards {
			f.snapshots--
		}
	}
	snap.dropped = true
}

// Restore makes the keyspace what it was when the snapshot was made. Those who
// watch a key that there was or is find it changed, those who wait for keys are
// served what there is now. Keys have the deadlines that they had; what has
// passed of them meanwhile has been served when it returns. It waits as Save does, and reports
// false, with nothing changed, if the snapshot has been dropped.
func (ks *Keyspace) Restore(snap *Snapshot) bool {
	ks.waitCold()
	if snap.dropped {
		ks.unlockAll()
		return false
	}
	v := &View{KS: ks, Now: ks.Clock.Now()}
	ks.mixed = true
	if ks.cut != nil {
		ks.cut.failed = true
	}
	for i, f := range snap.shards {
		s := &ks.shards[i]
		if s.frozen == f {
			continue // nobody has touched it since
		}
		for k, list := range s.watches {
			var now Entry
			if k.db < len(f.tables) {
				now = f.tables[k.db].entry([]byte(k.key))
			}
			v.replaced(list, s.tables[k.db].entry([]byte(k.key)).Ok(), now)
		}
		for db := range s.tables {
			t := table{}
			if db < len(f.tables) {
				t = f.tables[db]
			}
			if s.tables[db].segments != nil || t.segments != nil {
				s.tables[db].exchange(&t)
				v.grown += s.tables[db].bytes - t.bytes
			}
		}
		s.wheel.reset()
		s.sweep = sweep{earliest: f.earliest, notBefore: s.sweep.notBefore}
		s.holder, s.frozen = cold, f
		ks.noteDue(s)
		for k := range s.waits {
			v.ready = append(v.ready, k)
		}
	}
	if v.Logging() {
		v.Held = LockSet{allShards}
		ks.Causes.Replaced(v)
		v.Commit()
		v.Held.Reset()
	}
	ks.serveRestored(v)
	v.Account()
	ks.Dirty.Add(v.TakeChanges() + 1)
	ks.unlockAll()
	for i, f := range snap.shards {
		if f.bound {
			ks.endOrphans(i)
		}
	}
	ks.Sched.catchUp(ks)
	return true
}

// serveRestored serves the lines of the keys that are ready in v. What they need
// is thawed, and what is not is for them as if it were not held.
func (ks *Keyspace) serveRestored(v *View) {
	for _, k := range v.ready {
		_, at := locate([]byte(k.key))
		s := &ks.shards[at]
		ks.heldBy(s)
		for n := s.waits[k].head; n != nil; n = n.next {
			for _, also := range n.w.Also {
				_, at := locate(also)
				ks.heldBy(&ks.shards[at])
			}
		}
	}
	for i := range ks.shards {
		if ks.shards[i].holder == nil {
			v.Held.mask |= 1 << i
		}
	}
	v.ServeReady()
}

// LockCold is Lock for all shards, of which those that are frozen stay so: only
// Count, Each and Flush may be used then.
func (ks *Keyspace) LockCold() *Reservation {
	ks.close()
	for i := range ks.shards {
		if h := ks.shards[i].holder; h != nil && h != cold {
			ks.open()
			return h
		}
	}
	return nil
}

// waitCold is LockCold that waits for whoever holds keys.
func (ks *Keyspace) waitCold() {
	for h := ks.LockCold(); h != nil; h = ks.LockCold() {
		h.Wait()
	}
}

func (ks *Keyspace) unlockAll() { ks.Unlock(LockSet{allShards}) }

// heldBy returns the reservation that has a shard, whose lock is held, nil for
// none. A frozen shard is thawed.
func (ks *Keyspace) heldBy(s *shard) *Reservation {
	if s.holder == cold {
		ks.thaw(s, noDB)
	}
	return s.holder
}

// freeze makes what the shard holds a snapshot's. Its deadlines leave the wheel:
// when it is thawed, other entries have them.
func (s *shard) freeze() {
	n := len(s.tables)
	for n > 0 && s.tables[n-1].used == 0 {
		n--
	}
	f := &part{tables: slices.Clone(s.tables[:n]), due: s.wheel.next(), earliest: s.sweep.earliest,
		volatileKeys: slices.Clone(s.wheel.volatileKeys), volatileHashes: slices.Clone(s.wheel.volatileHashes), bound: len(s.bound) > 0}
	if s.sweep.active {
		f.earliest = min(f.earliest, s.sweep.met)
	}
	s.wheel.reset()
	s.sweep = sweep{earliest: f.earliest, notBefore: s.sweep.notBefore}
	s.holder, s.frozen = cold, f
}

// thaw gives the shard entries of its own, or, if no snapshot has them any more,
// those that it is frozen with; but none of the database without. All take their
// places in the wheel.
func (ks *Keyspace) thaw(s *shard, without int) {
	f := s.frozen
	s.holder, s.frozen, s.bound = nil, nil, nil
	var forward []waitKey
	now := ks.Clock.Now()
	// What is due now is not to wait for the next tick.
	v := &View{KS: ks, Now: now - microsPerTick, Held: ks.setOf(s)}
	for db := range f.tables {
		v.DB = db
		if db == without {
			v.grown -= s.tables[db].bytes
			s.tables[db].empty()
			continue
		}
		if f.snapshots > 0 {
			t := f.tables[db].twin(ks.Clone)
			s.tables[db].exchange(&t)
			v.grown += s.tables[db].bytes - t.bytes
		}
		s.tables[db].each(func(e Entry) bool {
			d := e.dueRef()
			if d == nil {
				return true
			}
			d.node = 0
			if d.at != 0 {
				s.wheel.countKey(db, e, 1)
			}
			e.h.flags &^= flagInnerCounted // rearm does
			v.rearm(s, e)
			if e.h.flags&flagInnerDue != 0 && e.h.kind == KindDelayQueue {
				if x, ok := e.Object().(Forwarder); ok && x.Forwarding() {
					forward = append(forward, waitKey{db, string(e.Key())})
				}
			}
			return true
		})
	}
	v.Account()
	v.Now = now
	for _, k := range forward {
		v.DB = k.db
		v.ForwardSoon([]byte(k.key))
	}
	ks.noteDue(s)
}

// twin is a copy of the entry, header and all, that shares nothing that can
// change with it.
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
