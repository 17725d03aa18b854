package engine

// The rules of transactions, in builds for tests (Keyspace.Strict): whoever breaks
// one panics at once, where in production an effect would be missing, or a key be
// seen that another one changes.
//
//   - A key is reached only under its shard's lock: within View.Held, which production checks too, and held.
//   - What sees or changes all keys has all shards.
//   - What was changed has an effect when its transaction ends, and the transaction
//     ends before its locks are let go.
//   - What a command makes of a structure in plain bytes is stored when the command ends, and before its entry goes.

import (
	"bytes"
	"fmt"
)

// within panics if a shard is not the view's to use.
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

// whole panics if the view has not all shards.
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

// stored panics if a structure was changed and the change was not told.
func (o *edit) stored() {
	if !o.open {
		return
	}
	const header = 4 // which has a mark that is no change
	if o.entry.h == nil || !o.of(o.kind).In(o.entry.raw()) || !bytes.Equal(o.entry.raw()[header:], o.was[header:]) {
		panic("engine: a value was changed and is not stored")
	}
}

// forgotten panics for changes that no effect stands for.
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
