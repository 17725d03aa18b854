package engine

// Transactions: every change of the keyspace is part of one. A View that holds its shards' locks is a transaction
// from its first change until Commit, which is called before the locks are released. It collects effects: commands in
// Redis's form, with absolute times and explicit IDs, which make the same changes again. Commit appends them to the
// journal. The locks are still held then, so the order of the journal agrees with the order of the changes of every
// key.
//
// So what reads the journal (files, replicas) depends on the effects alone. No change can be forgotten: Changed and
// its kin count each one. If a change has no effect when its command ends, the command itself is logged, or else the
// key's image. In tests (Strict) that last resort panics.

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
	// resp has the effects as RESP arrays, one after the other. ends has the end and the database of each.
	resp []byte
	ends []journal.Effect
	// scratch is memory for making a word.
	scratch []byte
	// told is how many of the view's changes have effects.
	told int64
	// keys are the changed keys, in order, while Logging. They are logged by their images if their changes have no
	// effect.
	keys []changedKey
	// own: the running command names its effects itself, or has none. named: it has named them, or needs none.
	own, named bool
	// forced: the running command is its own effect even if nothing changed. replicas: it is an effect for replicas
	// alone.
	forced, replicas bool
	// itself is how many of the effects are the keyspace's own (LogSystem). apart: each of these can be applied alone
	// (Independent).
	itself int
	apart  bool
	// While Log.Holds: touched has the shards whose keys were changed, and one is the hash of the last of these keys.
	// several: there were keys with other hashes. vague: other keys may have been changed, too.
	touched, one   uint64
	several, vague bool
	// after are the functions to call at the commit (AtCommit).
	after []func(at journal.LSN)
}

// changedKey is a key with the number of its change.
type changedKey struct {
	change int64
	db     int
	key    []byte
}

// Causes logs what the keyspace does by itself, as effects. Its functions are called while Logging only.
type Causes struct {
	// Gone: a key was removed because it expired, or to free memory.
	Gone func(v *View, key []byte, evicted bool)
	// FieldGone: a field of a hash was removed because it expired.
	FieldGone func(v *View, key, field []byte)
	// Settled: up to max leases of a queue, which had run out by now, were ended.
	Settled func(v *View, key []byte, max int)
	// Lost: these holders lost a lock. If there are none, the delay after a lease is over.
	Lost func(v *View, key []byte, lost []lock.Holder)
	// Ended: up to max grants of a limiter ended, because their time was over by now.
	Ended func(v *View, key []byte, max int)
	// SetBack: the clock was set by so many milliseconds, below 0, to the view's time. What lasts for a length of
	// time was moved with it.
	SetBack func(v *View, byMillis int64)
	// Image logs the whole value of a key, or that the key does not exist.
	Image func(v *View, key []byte)
	// Replaced logs all keys of all databases, in place of those before.
	Replaced func(v *View)
}

// Logging tells whether anybody reads the journal. If not, effects need not be named.
func (v *View) Logging() bool { return v.KS.Journal.Active() }

// Effect names a command in Redis's form as an effect of the running command. It may be called several times, in
// order. What the client sent is then not logged. The arguments are copied.
func (v *View) Effect(args ...[]byte) {
	v.own, v.named = true, true
	v.log(args)
}

// OwnEffects says that the running command names its effects itself, if it has
// any: what the client sent is not logged.
func (v *View) OwnEffects() { v.own = true }

// NoEffect says that the running command's changes need not be logged.
func (v *View) NoEffect() { v.own, v.named = true, true }

// ForceEffect logs the running command as it came, even if it changed nothing.
func (v *View) ForceEffect() { v.forced = true }

// ReplicaEffect sends the running command, which changes nothing, to replicas as it came, and to no file.
func (v *View) ReplicaEffect() { v.replicas = v.KS.Journal.Followed() }

// LogBefore logs an effect that does not belong to the running command but comes before it.
func (v *View) LogBefore(args ...[]byte) { v.log(args) }

// LogSystem is LogBefore for what the keyspace does by itself: keys and fields that expire or are evicted, and leases
// that end.
func (v *View) LogSystem(args ...[]byte) {
	n := len(v.ends)
	v.log(args)
	v.itself += len(v.ends) - n
}

// Independent says that what the keyspace does by itself during the running command can be applied change by change,
// if there is no other effect.
func (v *View) Independent() { v.apart = true }

func (v *View) log(args [][]byte) {
	if v.Logging() {
		v.write(args)
	}
}

// write is Words for all words at once. It makes room for all of them first, since every write command comes here.
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

// Words is an effect that is being written, for callers with so many effects that a slice of slices for each would be
// too slow. End ends it.
type Words struct{ v *View }

// Words begins an effect of n words, as LogBefore does. Call it while Logging only.
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

// Scratch is memory for making a word of an effect. It belongs to the view, and is reused.
func (v *View) Scratch() *[]byte { return &v.tx.scratch }

// caused says that all changes after number before are the keyspace's own, not the running command's. It reports
// whether their effect must be logged.
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

// AtCommit calls fn when the transaction is committed, under its locks. at is the LSN up to which the journal has all
// that the transaction did or has seen, as far as that was noted (Log.Holds).
func (v *View) AtCommit(fn func(at journal.LSN)) { v.after = append(v.after, fn) }

// EndCommand names the effects of a command that has run: those that it named itself, else the command as it came if
// it changed anything. A caller that is no command passes nil.
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

// Commit ends the transaction: it appends the effects to the journal as one whole. The locks are still held.
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

// CommitApart is Commit for effects that are independent of each other, such as those of keys that expire.
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
	// Replies need not wait for what the keyspace does by itself: the deadlines that cause it are in the journal, so
	// it happens again. So reads continue when nothing can be written and keys expire.
	if at != 0 && len(t.ends) > t.itself {
		v.LSN = at
		if v.KS.Journal.Holds() {
			m := v.Held.mask
			if !t.vague && t.touched != 0 {
				m = t.touched // a script that holds all shards changed these few
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

// ChangedNear is ChangedAt for a caller that has seen one key alone, whose shard is held.
func (ks *Keyspace) ChangedNear(p Place) journal.LSN {
	s := &ks.shards[p.shard]
	if s.near == nil {
		return s.wide
	}
	return max(s.wide, s.near[nearSlot(p.hash)])
}

// Sole tells whether the set is exactly the shard of a place.
func (s LockSet) Sole(p Place) bool { return s.mask == 1<<p.shard }

// ChangedAt is the LSN of the last change in some shards, which are held, as far as it was noted (Log.Holds).
func (ks *Keyspace) ChangedAt(set LockSet) (at journal.LSN) {
	for m := set.mask; m != 0; m &= m - 1 {
		at = max(at, ks.shards[bits.TrailingZeros64(m)].changed)
	}
	return at
}

// txBytesKept and txKeysKept are the largest buffers of a transaction that are kept for the next one.
const (
	txBytesKept = 64 << 10
	txKeysKept  = 1 << 10
)
