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
// as that command, or else as the key's image. In tests (Strict) that last resort
// is a panic.

import (
	"bytes"
	"strconv"

	"github.com/limitkv/limitkv/engine/journal"
)

// tx is a View's transaction.
type tx struct {
	// resp are the effects as RESP arrays, one after the other. ends tells where
	// each ends and which database it is of.
	resp []byte
	ends []journal.Effect
	// scratch is where a word is made.
	scratch []byte
	// told is how many of the view's changes effects stand for.
	told int64
	// keys are those that were changed, in order, while Logging: for what no effect
	// stands for when it is to be logged.
	keys []changedKey
	// own: the running command names its effects itself, or has none. named: it has.
	own, named bool
	// forced: the running command is its own effect even if nothing changed.
	forced bool
}

// changedKey is a key with the number of its change.
type changedKey struct {
	change int64
	db     int
	key    []byte
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
	// Replaced stands for all keys of all databases, in place of what there was.
	Replaced func(v *View)
}

// Logging tells whether anybody reads the journal: if not, effects need not be
// named.
func (v *View) Logging() bool { return v.KS.Journal.Active() }

// Effect says that the running command's changes are those of a command in
// Redis's form. It may be called several times, in order; what the client sent is
// then not logged. The arguments are copied.
func (v *View) Effect(args ...[]byte) {
	v.own, v.named = true, true
	v.log(args)
}

// OwnEffects says that the running command names its effects itself, if it has
// any: what the client sent is not logged.
func (v *View) OwnEffects() { v.own = true }

// NoEffect says that the running command's changes need not be logged.
func (v *View) NoEffect() { v.own, v.named = true, true }

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
	w := v.Words(len(args))
	for _, a := range args {
		w.Bytes(a)
	}
	w.End()
}

// Words is an effect that is being named, for those whose effects are so many that
// slices of slices for them would show. End ends it.
type Words struct{ v *View }

// Words begins an effect of n words, as Besides does: while Logging only.
func (v *View) Words(n int) Words {
	v.resp = appendHead(v.resp, '*', n)
	return Words{v}
}

// Bytes appends a word, which is copied.
func (w Words) Bytes(b []byte) {
	w.v.resp = append(append(appendHead(w.v.resp, '$', len(b)), b...), '\r', '\n')
}

// Text is Bytes for a text.
func (w Words) Text(s string) {
	w.v.resp = append(append(appendHead(w.v.resp, '$', len(s)), s...), '\r', '\n')
}

// Int appends a number.
func (w Words) Int(n int64) {
	w.v.resp = appendHead(w.v.resp, '$', digits(n))
	w.v.resp = append(strconv.AppendInt(w.v.resp, n, 10), '\r', '\n')
}

// End ends the effect.
func (w Words) End() {
	w.v.ends = append(w.v.ends, journal.Effect{DB: w.v.DB, End: len(w.v.resp)})
}

func appendHead(b []byte, kind byte, n int) []byte {
	if n < 10 { // most are
		return append(b, kind, byte('0'+n), '\r', '\n')
	}
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), '\r', '\n')
}

// Scratch is memory for making a word of an effect in: it is the view's, and kept
// for the next one.
func (v *View) Scratch() *[]byte { return &v.tx.scratch }

// caused says that the changes since there were so many before are the keyspace's
// own, for which the running command does not stand. It reports whether their
// effect is to be logged.
func (v *View) caused(before int64) bool {
	v.told += v.changes - before
	if !v.Logging() {
		return false
	}
	n := len(v.keys)
	for n > 0 && v.keys[n-1].change > before {
		n--
	}
	v.keys = v.keys[:n]
	return true
}

// EndCommand names the effects of a command that has run: those that it named
// itself, else the command as it came if it changed anything. Who is no command
// passes nil.
func (v *View) EndCommand(args [][]byte) {
	t := &v.tx
	switch {
	case !t.own && args != nil:
		if v.changes > t.told || t.forced {
			v.log(args)
		}
	case v.changes > t.told && !t.named && v.Logging():
		v.untold()
	}
	t.told, t.own, t.named, t.forced, t.keys = v.changes, false, false, false, t.keys[:0]
}

// untold logs the images of keys that were changed without an effect.
func (v *View) untold() {
	if v.KS.Strict {
		v.forgotten()
	}
	db := v.DB
	for i, k := range v.keys {
		v.DB = k.db
		if i == 0 || k.db != v.keys[i-1].db || !bytes.Equal(k.key, v.keys[i-1].key) {
			v.KS.Causes.Image(v, k.key)
		}
	}
	v.DB, v.told, v.keys = db, v.changes, v.keys[:0]
}

// Commit ends the transaction: its effects are handed to the journal as one
// whole. The locks are still held.
func (v *View) Commit() {
	if v.changes != v.told || len(v.ends) != 0 {
		v.commit(false)
	}
}

// CommitApart is Commit for effects that have nothing to do with each other, as
// those of keys that expire.
func (v *View) CommitApart() { v.commit(true) }

func (v *View) commit(apart bool) {
	t := &v.tx
	if v.changes != t.told {
		v.untold()
	}
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
	if cap(t.scratch) > txBytesKept {
		t.scratch = nil
	}
	if cap(t.keys) > txKeysKept {
		t.keys = nil
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

// txBytesKept and txKeysKept are how much of a transaction's buffers is kept for the
// next one.
const (
	txBytesKept = 64 << 10
	txKeysKept  = 1 << 10
)
