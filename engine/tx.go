package engine

// Transactions: the one gate that every change of the keyspace passes. A View
// that holds its shards' locks is a transaction from the first change on until
// Commit, which is called before the locks are let go. It collects effects:
// commands in Redis's form, with absolute times and explicit ids, that make of
// the same keys the same keys again. Commit hands them to the journal, in an
// order that agrees with the order of the changes of every key, since the locks
// are still held.
//
// Who reads the journal – files, replicas – so depends on nothing but the
// effects. That none is forgotten is by construction: each change is told by
// Changed or its kin, and what no effect stands for when a command ends is logged
// as that command, or else as the key's image.

import (
	"strconv"

	"github.com/limitkv/limitkv/engine/journal"
)

// tx is a View's transaction.
type tx struct {
	// resp are the effects as RESP arrays, one after the other. ends tells where
	// each ends and which database it is of.
	resp []byte
	ends []journal.Effect
	// told counts the changes that effects stand for already.
	told int64
	// own: the running command has named its effects itself, or has none.
	own bool
	// forced: the running command is its own effect even if nothing changed.
	forced bool
}

// Causes are the effects of what the keyspace does by itself, in the words of
// those who read the journal. They are called while Logging only.
type Causes struct {
	// Gone: a key was removed for its time being over, or to make room.
	Gone func(v *View, key []byte, evicted bool)
	// FieldGone: a field of a hash was removed for its time being over.
	FieldGone func(v *View, key, field []byte)
	// Settled: leases of a queue that had run out by now were ended, up to max.
	Settled func(v *View, key []byte, max int)
	// Image stands for the whole value of a key, or for its not being there.
	Image func(v *View, key []byte)
}

// Logging tells whether anybody reads the journal: if not, effects need not be
// named.
func (v *View) Logging() bool { return v.KS.Journal.Active() }

// Effect says that the running command's changes are those of a command in
// Redis's form. It may be called several times, in order; what the client sent is
// then not logged. The arguments are copied.
func (v *View) Effect(args ...[]byte) {
	v.own = true
	v.log(args)
}

// NoEffect says that the running command's changes need not be logged.
func (v *View) NoEffect() { v.own = true }

// ForceEffect has the running command logged as it came, even if it changed
// nothing.
func (v *View) ForceEffect() { v.forced = true }

// Besides logs an effect that is not the running command's but comes before it: of
// what it found expired.
func (v *View) Besides(args ...[]byte) { v.log(args) }

func (v *View) log(args [][]byte) {
	if !v.Logging() {
		return
	}
	b := append(v.tx.resp, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, '\r', '\n')
	for _, a := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, '\r', '\n')
		b = append(b, a...)
		b = append(b, '\r', '\n')
	}
	v.tx.resp = b
	v.tx.ends = append(v.tx.ends, journal.Effect{DB: v.DB, End: len(b)})
}

// caused says that the changes since there were so many before are the keyspace's
// own, for which the running command does not stand. It reports whether their
// effect is to be logged.
func (v *View) caused(before int64) bool {
	v.told += v.changes - before
	return v.Logging()
}

// EndCommand names the effects of a command that has run: those that it named
// itself, else the command as it came if it changed anything. changes is what
// TakeChanges returned after it.
func (v *View) EndCommand(args [][]byte, changes int64) {
	t := &v.tx
	if (changes > t.told || t.forced) && !t.own {
		v.log(args)
	}
	t.told, t.own, t.forced = 0, false, false
}

// Commit ends the transaction: its effects are handed to the journal as one
// whole. The locks are still held.
func (v *View) Commit() { v.commit(false) }

// CommitApart is Commit for effects that have nothing to do with each other, as
// those of keys that expire.
func (v *View) CommitApart() { v.commit(true) }

func (v *View) commit(apart bool) {
	t := &v.tx
	if len(t.ends) == 0 {
		return
	}
	v.LSN = v.KS.Journal.Append(&journal.Batch{NowMicros: v.Now, Effects: t.ends, RESP: t.resp, NoMulti: apart})
	if v.KS.Gated.Load() {
		for m := v.Held.mask; m != 0; m &= m - 1 {
			v.KS.shards[trailingZeros(m)].changed = v.LSN
		}
	}
	t.ends, t.resp = t.ends[:0], t.resp[:0]
	if cap(t.resp) > txBytesKept {
		t.resp = nil
	}
}

// ChangedAt is the place in the journal of the last change in some shards, which are
// held, as far as it was noted (Gated).
func (ks *Keyspace) ChangedAt(set LockSet) (at journal.LSN) {
	for m := set.mask; m != 0; m &= m - 1 {
		at = max(at, ks.shards[trailingZeros(m)].changed)
	}
	return at
}

// txBytesKept is how much of a transaction's buffer is kept for the next one.
const txBytesKept = 64 << 10
