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
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/lock"
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
	// forced: the running command is its own effect even if nothing changed. replicas:
	// it is so for replicas alone.
	forced, replicas bool
	// itself is how many of the effects are the keyspace's own (LogSystem), apart that these stand for themselves (Independent).
	itself int
	apart  bool
	// touched are the shards whose keys were changed, while Log.Holds, and one is the hash of the last of these keys, of
	// which there are several with other hashes; vague: others may have been, too.
	touched, one   uint64
	several, vague bool
	// after is what waits for the commit (AtCommit).
	after []func(at journal.LSN)
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
	// Lost: some lost a lock, or, where there are none, the delay after a lease is over.
	Lost func(v *View, key []byte, lost []lock.Holder)
	// Ended: grants of a limiter whose time was over by now ended, up to max.
	Ended func(v *View, key []byte, max int)
	// SetBack: the clock went by so many milliseconds, below 0, to the view's time, and what lasts for a length of time with it.
	SetBack func(v *View, byMillis int64)
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

// ReplicaEffect has the running command, which changes nothing, sent to replicas as it
// came, and to no file.
func (v *View) ReplicaEffect() { v.replicas = v.KS.Journal.Followed() }

// LogBefore logs an effect that is not the running command's but comes before it.
func (v *View) LogBefore(args ...[]byte) { v.log(args) }

// LogSystem is LogBefore for what the keyspace does by itself when its time has come: of
// keys and fields that expire or are evicted, and of leases that end.
func (v *View) LogSystem(args ...[]byte) {
	n := len(v.ends)
	v.log(args)
	v.itself += len(v.ends) - n
}

// Independent has what the keyspace does by itself during the running command stand for itself, each change alone, if nothing else
// is done.
func (v *View) Independent() { v.apart = true }

func (v *View) log(args [][]byte) {
	if v.Logging() {
		v.write(args)
	}
}

// write is Words for all words at once, which have their room before the first of them: this is on the way of every
// write command.
func (v *View) write(args [][]byte) {
	at, room := len(v.resp), headMax
	for _, a := range args {
		room += headMax + len(a) + 2
	}
	b := slices.Grow(v.resp, room)[:at+room]
	at = len(appendHead(b[:at], '*', len(args)))
	for _, a := range args {
		if n := len(a); n < len(wordHeads) {
			binary.LittleEndian.PutUint64(b[at:], wordHeads[n])
			at += 5
			if n < 10 {
				at--
			}
		} else {
			at = len(appendHead(b[:at], '$', n))
		}
		at += copy(b[at:], a)
		b[at], b[at+1] = '\r', '\n'
		at += 2
	}
	v.resp = b[:at]
	Words{v}.End()
}

// wordHeads are the lines with the lengths of short words, 4 or 5 bytes each.
var wordHeads = func() (heads [100]uint64) {
	for n := range heads {
		heads[n] = binary.LittleEndian.Uint64(append(appendHead(nil, '$', n), 0, 0, 0, 0))
	}
	return heads
}()

// Words is an effect that is being named, for those whose effects are so many that
// slices of slices for them would show. End ends it.
type Words struct{ v *View }

// Words begins an effect of n words, as LogBefore does: while Logging only.
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

// headMax is the longest line with the length of an effect or a word.
const headMax = len("$9223372036854775807\r\n")

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

// AtCommit has fn called when the transaction is committed, under its locks, with the
// place in the journal up to which all is that the transaction did or has seen, as far
// as that was noted (Log.Holds).
func (v *View) AtCommit(fn func(at journal.LSN)) { v.after = append(v.after, fn) }

// EndCommand names the effects of a command that has run: those that it named
// itself, else the command as it came if it changed anything. Who is no command
// passes nil.
func (v *View) EndCommand(args [][]byte) {
	t := &v.tx
	if v.KS.Strict {
		v.edit.stored()
	}
	t.vague = t.vague || t.forced
	switch {
	case t.replicas && args != nil:
		v.write(args)
		v.ends[len(v.ends)-1].ReplicasOnly = true
	case !t.own && args != nil:
		if v.changes > t.told || t.forced {
			v.log(args)
		}
	case v.changes > t.told && !t.named && v.Logging():
		v.untold()
	}
	t.told, t.own, t.named, t.forced, t.replicas, t.keys = v.changes, false, false, false, false, t.keys[:0]
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
	if v.changes != v.told || len(v.ends) != 0 || len(v.after) != 0 {
		v.commit(false, nil)
	}
}

// CommitSole is Commit for a command that names one key.
func (v *View) CommitSole(p Place) {
	if v.changes != v.told || len(v.ends) != 0 || len(v.after) != 0 {
		v.commit(false, &p)
	}
}

// Changes is what TakeChanges would return.
func (v *View) Changes() int64 { return v.changes }

// TakeChanges returns how often Changed was called since the last time.
func (v *View) TakeChanges() int64 {
	n := v.changes
	v.changes, v.told = 0, 0
	return n
}

// CommitApart is Commit for effects that have nothing to do with each other, as
// those of keys that expire.
func (v *View) CommitApart() {
	if v.changes != v.told || len(v.ends) != 0 || len(v.after) != 0 {
		v.commit(true, nil)
	}
}

func (v *View) commit(apart bool, sole *Place) {
	t := &v.tx
	if v.changes != t.told {
		v.untold()
	}
	var at journal.LSN
	if len(t.ends) > 0 {
		b := journal.Batch{NowMicros: v.Now, Effects: t.ends, RESP: t.resp, NoMulti: apart || t.apart && t.itself == len(t.ends)}
		if at = v.KS.Journal.Append(&b); b.Followed != 0 {
			v.Replicas = b.Followed
		}
	}
	// Replies need not wait for what the keyspace does by itself. It does it again, since the deadlines that it goes by
	// are in the journal. So reads go on while nothing can be written and keys expire.
	if at != 0 && len(t.ends) > t.itself {
		v.LSN = at
		if v.KS.Journal.Holds() {
			m := v.Held.mask
			if !t.vague && t.touched != 0 {
				m = t.touched // of a script that holds all shards, these few
			}
			near := sole != nil && !t.vague && !t.several && t.touched == 1<<sole.shard && t.one == sole.hash
			for ; m != 0; m &= m - 1 {
				s := &v.KS.shards[bits.TrailingZeros64(m)]
				s.changed = at
				if !near {
					s.wide = at
					continue
				}
				if s.near == nil {
					s.near = new([nearSlots]journal.LSN)
				}
				s.near[nearSlot(sole.hash)] = at
			}
		}
	}
	t.ends, t.resp, t.itself, t.touched, t.one, t.several, t.vague, t.apart = t.ends[:0], t.resp[:0], 0, 0, 0, false, false, false
	if len(t.after) > 0 {
		at = max(at, v.KS.ChangedAt(v.Held))
		for _, fn := range t.after {
			fn(at)
		}
		t.after = nil
	}
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

// ChangedNear is ChangedAt for who has seen nothing but a key, whose shard is held.
func (ks *Keyspace) ChangedNear(p Place) journal.LSN {
	s := &ks.shards[p.shard]
	if s.near == nil {
		return s.wide
	}
	return max(s.wide, s.near[nearSlot(p.hash)])
}

// Sole tells whether some shards are the one of a place.
func (s LockSet) Sole(p Place) bool { return s.mask == 1<<p.shard }

// ChangedAt is the place in the journal of the last change in some shards, which are
// held, as far as it was noted (Log.Holds).
func (ks *Keyspace) ChangedAt(set LockSet) (at journal.LSN) {
	for m := set.mask; m != 0; m &= m - 1 {
		at = max(at, ks.shards[bits.TrailingZeros64(m)].changed)
	}
	return at
}

// txBytesKept and txKeysKept are how much of a transaction's buffers is kept for the
// next one.
const (
	txBytesKept = 64 << 10
	txKeysKept  = 1 << 10
)
