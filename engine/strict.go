package engine

// The rules of transactions, checked in builds for tests (Keyspace.Strict): a broken rule panics at once. In production
// an effect would be missing, or a key be seen while another command changes it.
//
//   - A key is reached only under its shard's lock: the shard is in View.Held, which production checks too, and locked.
//   - What sees or changes all keys holds all shards.
//   - Every change has an effect when its transaction ends, and the transaction ends before its locks are released.
//   - A changed structure in plain bytes is stored when the command ends, and before its entry leaves the table.

import (
	"bytes"
	"fmt"
)

// within panics if the view may not use a shard.
func (v *View) within(shard int, key []byte) {
	if v.Held.mask>>shard&1 == 0 {
		outside(key)
	}
	if !v.Reserved {
		v.locked(shard)
	}
}

// locked panics if nobody holds a shard's lock.
func (v *View) locked(shard int) {
	if s := &v.KS.shards[shard]; !v.KS.closed() && s.mu.TryLock() {
		s.mu.Unlock()
		panic(fmt.Sprintf("engine: the lock of shard %d was let go", shard))
	}
}

// whole panics if the view does not hold all shards.
func (v *View) whole() {
	if !v.KS.Strict {
		return
	}
	if !v.Held.All() {
		panic("engine: all keys are looked at, and not all shards are held")
	}
	if !v.Reserved {
		v.locked(0)
		v.locked(shardCount - 1)
	}
}

// settled panics if the transaction has effects that were not committed, or changes
// without effects.
func (v *View) settled() {
	if len(v.ends) != 0 {
		panic("engine: effects are not committed")
	}
	if v.changes != v.told {
		v.forgotten()
	}
}

// stored panics if a structure was changed and not stored.
func (o *edit) stored() {
	if !o.open {
		return
	}
	const header = 4 // it has a mark whose change does not count
	if o.entry.h == nil || !o.of(o.kind).In(o.entry.raw()) || !bytes.Equal(o.entry.raw()[header:], o.was[header:]) {
		panic("engine: a value was changed and is not stored")
	}
}

// forgotten panics for changes that have no effect.
func (v *View) forgotten() {
	names := ""
	for _, k := range v.keys {
		names += fmt.Sprintf(" %.100q of database %d", k.key, k.db)
		if len(names) > 500 {
			break
		}
	}
	panic(fmt.Sprintf("engine: %d changes have no effect:%s", v.changes-v.told, names))
}
