package engine

// A View is how a command sees and changes the keyspace while it holds the locks of its shards. Each worker has one,
// which is reset for each command.

import (
	"unsafe"

	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/lock"
)

// View works on one database, at one time, while it holds locks.
type View struct {
	KS  *Keyspace
	DB  int
	Now int64 // Unix microseconds; the same for a whole script or EXEC
	// Held is the set of shards that the view holds. Verbs must not touch keys outside of it.
	Held LockSet
	// Reserved: a Reservation holds the shards, not their mutexes.
	Reserved bool
	// Who is the ID of the client that changes keys, for Keyspace.Touched; 0 = none.
	Who int64
	// Told: the changes come from a primary or a file (Keyspace.Leave).
	Told bool
	// NoTouch leaves access times unchanged (CLIENT NO-TOUCH, OBJECT).
	NoTouch bool
	// system: the view does what no client asked for, such as expiry.
	system bool
	// walks: the view belongs to the walk of a cut.
	walks bool
	// Writes: the command may change what Get finds.
	Writes bool
	// LSN is where the last transaction's effects end in the journal.
	LSN journal.LSN
	// Replicas is the same in the replicas' stream (Batch.Followed), 0 while no replica reads it.
	Replicas journal.LSN

	tx
	touches uint64    // accesses counted so far, for LFU
	ready   []waitKey // keys with waiters that this command changed
	changes int64
	grown   int64        // bytes by which keys grew, see Account
	doubt   bool         // the command has begun to change keys
	objects bool         // the command has found objects, which it may change
	object  *objectEntry // the last object found, nil if it may have left its table
	edit    edit         // the structure in plain bytes that the command changes
	leaving bool         // PutLock stores a lock: leftLock must not tell its holders

	// The hash and shard of the key that was located last: dispatch computes them for the lock set, and the verbs
	// find them here.
	hintPtr  *byte
	hintLen  int
	hintHash uint64
	hintSh   int
}

func (v *View) locate(key []byte) (hash uint64, s *shard) {
	p := unsafe.SliceData(key)
	if p == v.hintPtr && len(key) == v.hintLen && p != nil {
		return v.hintHash, &v.KS.shards[v.hintSh]
	}
	hash, i := locate(key)
	if v.Held.mask>>i&1 == 0 {
		outside(key)
	}
	if v.KS.Strict && !v.Reserved {
		v.locked(i)
	}
	return hash, &v.KS.shards[i]
}

// place is the hash of a key and the index of its shard.
func (v *View) place(key []byte) (hash uint64, shard int) {
	if p := unsafe.SliceData(key); p == v.hintPtr && len(key) == v.hintLen && p != nil {
		return v.hintHash, v.hintSh
	}
	return locate(key)
}

// Hint remembers the hash of a key that is about to be used several times, and
// whose shard is held. The memory of key must not change until Forget.
func (v *View) Hint(key []byte) {
	v.hint(key)
	if v.KS.Strict {
		v.within(v.hintSh, key)
	}
}

func (v *View) hint(key []byte) {
	v.hintHash, v.hintSh = locate(key)
	v.hintPtr, v.hintLen = unsafe.SliceData(key), len(key)
}

// Need adds key's shard to a lock set and remembers the key's hash. The memory
// of key must not change until Forget: only dispatch, whose arguments stay
// where they are while a command runs, may call it.
func (v *View) Need(set *LockSet, key []byte) {
	v.hint(key)
	set.mask |= 1 << v.hintSh
}

// HintAt is Hint for a key whose place is known.
func (v *View) HintAt(key []byte, at Place) {
	v.hintHash, v.hintSh = at.hash, at.shard
	v.hintPtr, v.hintLen = unsafe.SliceData(key), len(key)
	if v.KS.Strict {
		v.within(v.hintSh, key)
	}
}

// NeedAt is Need for a key whose place is known.
func (v *View) NeedAt(set *LockSet, key []byte, at Place) {
	v.hintHash, v.hintSh = at.hash, at.shard
	v.hintPtr, v.hintLen = unsafe.SliceData(key), len(key)
	set.mask |= 1 << at.shard
}

// Forget begins another command. It drops the remembered hash, because the memory of that key is about to be reused.
func (v *View) Forget() { v.hintPtr, v.objects, v.object, v.edit.open = nil, false, nil, false }

// Rest drops what the last command has found and made. That may be large, and no command is expected for a while, so
// the collector can free it.
func (v *View) Rest() {
	if !v.objects {
		return
	}
	v.Forget()
	o := &v.edit
	o.Work, o.read, o.entry, o.key = Work{}, Work{}, Entry{}, nil
}

// Get finds a key for use: an expired one is removed first, hits and misses
// are counted, and the access is noted.
func (v *View) Get(key []byte) Entry {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := t.find(hash, key)
	if i < 0 {
		v.missed(s, key)
		return Entry{}
	}
	e := t.at(i)
	if v.Writes {
		v.keep(e)
	}
	if e.h.flags&(flagDeadline|flagObject|flagIdle) != 0 {
		if e = v.settle(s, e); e.h == nil {
			v.missed(s, key)
			return e
		}
	}
	s.stats.Hits++
	if !v.NoTouch {
		v.touch(e)
	}
	return e
}

func (v *View) missed(s *shard, key []byte) {
	s.stats.Misses++
	if v.KS.EventMask.Load()&uint32(EventKeyMiss) != 0 {
		v.Notify(EventKeyMiss, "keymiss", key)
	}
}

// Look is Get without noting the access and without the event of a miss: for introspection, which still counts hits
// and misses.
func (v *View) Look(key []byte) Entry {
	e := v.Peek(key)
	if _, s := v.locate(key); e.h == nil {
		s.stats.Misses++
	} else {
		s.stats.Hits++
	}
	return e
}

// Peek is Get without counting and without noting the access: for looking up a key that is about to be written, and
// for introspection.
func (v *View) Peek(key []byte) Entry {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := t.find(hash, key)
	if i < 0 {
		return Entry{}
	}
	e := t.at(i)
	v.keep(e)
	if e.h.flags&(flagDeadline|flagObject|flagIdle) != 0 {
		e = v.settle(s, e)
	}
	return e
}

// Find is Peek without bringing the key up to now: it removes nothing, and finds expired keys too. For planning,
// before a command runs.
func (v *View) Find(key []byte) Entry {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	if i := t.find(hash, key); i >= 0 {
		return t.at(i)
	}
	return Entry{}
}

// GetWrite is Peek with the access noted: the look-up of write commands.
func (v *View) GetWrite(key []byte) Entry {
	e := v.Peek(key)
	v.doubt = true
	if e.h != nil && !v.NoTouch {
		v.touch(e)
	}
	return e
}

func (v *View) touch(e Entry) {
	if v.KS.LFU.Load() {
		e.h.freq = v.KS.LFURule.touched(e.h.freq, v.Now, v.touches)
		v.touches++
	}
	// Within a second the access time stays the same. It is not written again then, so the entry's cache line can
	// stay with both cores.
	if now := uint32(v.Now / 1e6); e.h.access != now {
		e.h.access = now
	}
}

// settle brings an entry up to now: it removes an expired key, and the expired parts of an object. It returns the
// zero Entry if nothing is left.
func (v *View) settle(s *shard, e Entry) Entry {
	off := v.expiry()
	if d := e.dueRef(); off&expiryFollows == 0 && (d != nil && d.at != 0 && d.at < v.Now/1000 || v.idle(s, e)) {
		if off&expiryPaused == 0 {
			doubt := v.doubt
			v.expire(s, e)
			v.doubt = doubt
		}
		return Entry{}
	}
	if e.h.flags&flagObject != 0 {
		v.objects, v.object = true, e.object()
	}
	if e.h.flags&flagInnerDue == 0 || off&expiryFollows != 0 {
		return e
	}
	switch at := e.innerDue(); {
	case at == 0 || at > v.Now:
		return e
	case off&expiryLeft != 0:
		return v.without(e)
	}
	return v.settleForLook(s, e)
}

// put enters an entry under its key, in place of whatever is there.
func (v *View) put(e Entry, deadline int64) Entry {
	key := e.Key()
	hash, s := v.locate(key) // this is the entry's own copy of the key, for which there is no hint
	if e.h.flags&flagObject != 0 {
		v.objects, v.object = true, nil // it may still be filled
	}
	v.enter(hash, s, s.tables[v.DB].find(hash, key), e, deadline)
	return e
}

// drop removes an entry from the wheel, because it leaves its table.
func (v *View) drop(s *shard, e Entry) {
	v.keep(e) // while it still has its deadline
	v.doubt = true
	d := e.dueRef()
	if d == nil {
		return
	}
	if e.h.kind == KindLock {
		v.leftLock(e)
		s.noteBound(e, false)
	}
	if d.at != 0 {
		s.wheel.countKey(v.DB, e, -1)
	}
	if d.node != 0 {
		s.wheel.remove(d.node)
		d.node = 0
	}
	v.countHash(s, e, false)
	d.at = 0
}

// countHash notes whether a hash has fields with deadlines.
func (v *View) countHash(s *shard, e Entry, has bool) {
	switch counted := e.h.flags&flagInnerCounted != 0; {
	case has && !counted:
		s.wheel.volatileHashes[v.DB]++
	case !has && counted:
		s.wheel.volatileHashes[v.DB]--
	default:
		return
	}
	e.h.flags ^= flagInnerCounted
}

// arm sets the deadline of the key itself (0 = none), and the entry's place in the wheel. The entry must have room
// for a deadline.
func (v *View) arm(s *shard, e Entry, deadline int64) {
	v.doubt = true
	d := e.dueRef()
	if (d.at == 0) != (deadline == 0) {
		if deadline != 0 {
			s.wheel.countKey(v.DB, e, 1)
		} else {
			s.wheel.countKey(v.DB, e, -1)
		}
	}
	if deadline != 0 && deadline != d.at && !v.Told && v.KS.own.on.Load() {
		v.KS.own.add(v.DB, e.Key())
	}
	d.at = deadline
	d.db = uint16(v.DB)
	v.rearm(s, e)
}

// wakeAt is when the wheel has something to do with an entry, in Unix milliseconds: when its key expires, or when
// something inside it is due, which inner gives in microseconds.
func (e Entry) wakeAt(inner int64) int64 {
	at := never
	if d := e.dueRef(); d.at != 0 && d.at != never {
		at = d.at + 1 // the key lives through its last millisecond
	}
	if inner != 0 {
		at = min(at, ceilMillis(inner))
	}
	return at
}

// rearm puts the entry into the wheel for the earliest of its deadlines.
func (v *View) rearm(s *shard, e Entry) {
	d, inner := e.dueRef(), e.innerDue()
	at := e.wakeAt(inner)
	if e.h.flags&flagInnerDue != 0 {
		switch e.h.kind {
		case KindHash:
			v.countHash(s, e, inner != 0)
		case KindLock:
			d.db = uint16(v.DB)
			s.noteBound(e, true)
		}
	}
	switch {
	case at == never:
		if d.node != 0 {
			s.wheel.remove(d.node)
			d.node = 0
		}
		return
	case d.node == 0:
		d.db = uint16(v.DB)
		d.node = s.wheel.add(unsafe.Pointer(e.h), at, v.Now/1000)
	default:
		s.wheel.move(d.node, at)
	}
	// What is due already is served in the next millisecond, like everything that becomes due in this one. Otherwise
	// each key that gets a deadline in the past would wake the scheduler.
	v.KS.Sched.shardDue(s, max(at, v.Now/1000+1))
}

// SetDeadline sets when the key expires, in Unix milliseconds (0 = never). It returns the entry, which may have
// moved. The caller handles a time that has passed: Redis deletes such a key at once, without the event "expired".
func (v *View) SetDeadline(e Entry, at int64) Entry {
	_, s := v.locate(e.Key())
	if e.dueRef() == nil {
		if at == 0 {
			return e
		}
		e = v.widen(s, e)
	}
	v.arm(s, e, at)
	return e
}

// widen moves a pointer-free entry to one with room for a deadline.
func (v *View) widen(s *shard, e Entry) Entry {
	n, isInt := e.Int()
	w := newBytesEntry(e.h.kind, e.Key(), int(e.h.valLen), isInt, true)
	w.h.flags |= e.h.flags & (flagRaw | flagIdle)
	w.h.access, w.h.freq = e.h.access, e.h.freq
	if isInt {
		*w.intRef() = n
	} else {
		copy(w.raw(), e.raw())
	}
	t := &s.tables[v.DB]
	v.replace(t, t.find(HashBytes(e.Key()), e.Key()), w)
	return w
}

// InnerDue tells the keyspace that the object under e has deadlines inside,
// which may have changed: call it after every change of them.
func (v *View) InnerDue(e Entry) {
	if e.h.flags&flagObject == 0 {
		return // enter arms plain bytes by what they hold
	}
	v.doubt = true
	e.h.flags |= flagInnerDue
	_, s := v.locate(e.Key())
	v.rearm(s, e)
}

// PutObject stores an object (one of the structures) under a key, replacing
// what is there.
func (v *View) PutObject(key []byte, kind Kind, obj any, deadline int64) Entry {
	if kind.fitsBytes() {
		return v.putPlain(key, kind, obj.(structure), deadline)
	}
	e := v.put(newObjectEntry(kind, key, obj), deadline)
	if x, ok := obj.(Settler); ok && x.NextDue() != 0 || kind == KindLock {
		v.InnerDue(e)
	}
	return e
}

// Delete removes a key. It reports whether the key was there.
func (v *View) Delete(key []byte) bool {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := t.find(hash, key)
	if i < 0 {
		return false
	}
	e := t.at(i)
	if e.h.flags&(flagDeadline|flagObject|flagIdle) != 0 {
		if e = v.settle(s, e); e.h == nil {
			return false
		}
	}
	v.drop(s, e)
	v.remove(t, i)
	return true
}

// Rename moves an entry to another name, with its deadline, replacing what is
// there. Both shards are held.
func (v *View) Rename(from, to []byte) { v.Move(from, to, v.DB) }

// Move moves an entry to a name in a database, with its deadline.
func (v *View) Move(from, to []byte, db int) {
	hash, s := v.locate(from)
	t := &s.tables[v.DB]
	i := t.find(hash, from)
	e := t.at(i)
	deadline := e.Deadline()
	v.drop(s, e)
	v.remove(t, i)
	here := v.DB
	v.DB = db
	v.Delete(to) // the key is made anew: it gets no new value in place of an old one
	v.put(v.renamed(e, to), deadline)
	if e.h.flags&flagObject != 0 {
		v.KS.helds.moved(e.object().obj, to)
	}
	if e.h.flags&(flagInnerDue|flagObject) == flagInnerDue|flagObject {
		v.InnerDue(v.Peek(to))
	}
	v.DB = here
}

// renamed is an entry for another key: an object moves to it, other values are
// copied.
func (v *View) renamed(e Entry, key []byte) Entry {
	if e.h.flags&flagObject != 0 {
		if l, ok := e.object().obj.(*lock.Lock); ok {
			l.Orphan(nobody) // a lease that is bound to a connection is bound to its key too
		}
		w := newObjectEntry(e.h.kind, key, e.object().obj)
		w.h.flags |= e.h.flags & flagIdle
		return w
	}
	return v.copied(e, key)
}

func (v *View) copied(e Entry, key []byte) Entry {
	n, isInt := e.Int()
	if isInt {
		w := newBytesEntry(e.h.kind, key, 0, isInt, e.h.flags&flagDeadline != 0)
		*w.intRef() = n
		return w
	}
	p := e.raw()
	switch {
	case e.h.kind == KindLock:
		p = unbound(p)
	case e.h.kind.fitsBytes():
		x := v.edit.read.of(e.h.kind)
		x.Over(p)
		p, _ = x.Plain() // without the spare room behind it
	}
	w := newBytesEntry(e.h.kind, key, len(p), isInt, e.h.flags&flagDeadline != 0)
	w.h.flags |= e.h.flags & (flagRaw | flagIdle | flagInnerDue)
	copy(w.raw(), p)
	return w
}

// Copy stores a copy of an entry, with its deadline, under a name in a database. clone is the copy of an object;
// plain bytes and strings are copied here.
func (v *View) Copy(e Entry, to []byte, db int, clone any) {
	here := v.DB
	deadline := e.Deadline()
	v.DB = db
	v.Delete(to) // the key is made anew: it gets no new value in place of an old one
	switch {
	case e.h.flags&flagObject == 0:
		v.put(v.copied(e, to), deadline)
	default:
		big, ok := e.object().obj.(*bigString)
		if !ok {
			if l, ok := clone.(*lock.Lock); ok {
				l.Orphan(nobody)
			}
			v.PutObject(to, e.h.kind, clone, deadline)
			break
		}
		w := newObjectEntry(e.h.kind, to, big.twin())
		w.h.flags |= e.h.flags & flagIdle
		v.put(w, deadline)
	}
	v.DB = here
}
