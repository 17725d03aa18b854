// Package delayqueue is the delay queue: entries with an id and a payload that
// fall due at a time, are taken in that order, and may be leased instead of
// removed, so that nothing is lost when a worker dies. It knows no key, lock,
// clock or protocol; times are handed in, in Unix microseconds.
//
// An entry is one record without pointers in a hash table by id; three trees
// hold the records in order of time: those that wait (due or not yet), those
// that are leased, and those that have failed for good and are on their way to
// the dead-letter queue. A heap would be a little smaller than a tree, but could
// not count what is due or list it in order; an entry takes about 130 bytes
// with an id and a payload of 32 bytes together.
//
// All is O(log n) an entry, and whatever may concern many takes a maximum.
package delayqueue

import (
	"encoding/binary"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/engine/table"
)

// State is where an entry stands.
type State uint8

const (
	// Any is every state, where one is asked for.
	Any State = iota
	// Ready entries are due.
	Ready
	// Delayed entries are not due yet.
	Delayed
	// Leased entries are with a worker.
	Leased
	// Dying entries have failed for good and wait to be moved to the dead-letter
	// queue.
	Dying
)

// Settings are a queue's defaults. The zero Settings have none.
type Settings struct {
	LeaseMicros int64 // how long a delivered entry is leased; 0 = it is removed
	Tries       int64 // deliveries after which an entry is dead; 0 = any number
	// Dead is the key of the dead-letter queue. Without one Tries has no effect:
	// nothing is thrown away.
	Dead string
	// BackoffMicros is how long an entry waits after its first failure, doubled
	// with each further one up to BackoffMaxMicros.
	BackoffMicros, BackoffMaxMicros int64
}

// Totals are counts since the queue was made.
type Totals struct {
	Added, Delivered, Acked, Nacked, Expired, Dead, Removed int64
}

// Entry is one entry as it is handed out. ID and Payload alias the queue's
// memory and hold until the next write.
type Entry struct {
	ID, Payload []byte
	DueMicros   int64 // when it fell or falls due
	Attempt     int64 // how often it was delivered
	State       State
	// UntilMicros is when the lease of a leased entry ends.
	UntilMicros int64
}

// Queue is a delay queue, made with New.
type Queue struct {
	table    table.Table
	trees    [3]*btree.BTreeG[item] // by place: waiting, leased, dying
	seq      uint64
	settings Settings
	kept     bool
	totals   Totals
}

// place is the tree that an entry is in.
type place uint8

const (
	waiting place = iota
	leased
	dying
)

// item is an entry in a tree, with a copy of the time it is there by.
type item struct {
	at     int64
	record table.Record
}

// Equal times keep the order of adding.
func before(a, b item) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return seqOf(a.record) < seqOf(b.record)
}

// A record's value is this head and the payload.
const (
	headAt      = 0  // int64: the time it is in its tree by
	headDue     = 8  // int64: when it fell due
	headSeq     = 16 // uint64: order among equal times
	headAttempt = 24 // uint32: deliveries
	headBase    = 28 // uint32: of those, the ones before it was last replaced
	headPlace   = 32 // place
	headSize    = 33
)

func seqOf(r table.Record) uint64 {
	if r.None() { // a bound, before all entries of its time
		return 0
	}
	return binary.LittleEndian.Uint64(r.Value()[headSeq:])
}

func attemptOf(r table.Record) uint32 {
	return binary.LittleEndian.Uint32(r.Value()[headAttempt:])
}

func itemOf(r table.Record) item {
	return item{int64(binary.LittleEndian.Uint64(r.Value()[headAt:])), r}
}

func placeOf(r table.Record) place { return place(r.Value()[headPlace]) }

// New makes an empty queue.
func New() *Queue {
	q := &Queue{}
	for i := range q.trees {
		q.trees[i] = btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})
	}
	return q
}

// put puts a record that is in no tree into one, by a time.
func (q *Queue) put(r table.Record, in place, at int64) {
	head := r.Value()
	binary.LittleEndian.PutUint64(head[headAt:], uint64(at))
	head[headPlace] = byte(in)
	if in == waiting {
		// Due then, behind those that already are due then.
		q.seq++
		binary.LittleEndian.PutUint64(head[headDue:], uint64(at))
		binary.LittleEndian.PutUint64(head[headSeq:], q.seq)
	}
	q.trees[in].Load(item{at, r}) // quick where the time is the latest yet
}

// take takes a record out of its tree.
func (q *Queue) take(r table.Record) { q.trees[placeOf(r)].Delete(itemOf(r)) }

// entry is a record as it is handed out at now.
func entry(r table.Record, now int64) Entry {
	head := r.Value()
	e := Entry{
		ID:        r.Key(),
		Payload:   head[headSize:],
		DueMicros: int64(binary.LittleEndian.Uint64(head[headDue:])),
		Attempt:   int64(attemptOf(r)),
	}
	switch placeOf(r) {
	case leased:
		e.State, e.UntilMicros = Leased, itemOf(r).at
	case dying:
		e.State = Dying
	default:
		e.State = Delayed
		if e.DueMicros <= now {
			e.State = Ready
		}
	}
	return e
}

// Mode is the condition of an Add.
type Mode uint8

const (
	// Put adds, or replaces and reschedules.
	Put Mode = iota
	// OnlyNew adds only an id that is not there.
	OnlyNew
	// OnlyOld replaces and reschedules only an id that is there.
	OnlyOld
)

// Add adds an entry that falls due at a time, or replaces the one with its id,
// whatever state that is in. It reports whether the condition was met.
//
// A replaced entry that was leased is taken from its worker. Its count of
// deliveries goes on, so that worker's id#attempt stays stale, but the tries
// start anew.
func (q *Queue) Add(id, payload []byte, dueMicros int64, mode Mode) bool {
	old := q.table.Get(id)
	if old.None() && mode == OnlyOld || !old.None() && mode == OnlyNew {
		return false
	}
	r := table.NewRecord(id, headSize+len(payload), false)
	copy(r.Value()[headSize:], payload)
	if old.None() {
		q.table.Add(r)
		q.totals.Added++
	} else {
		q.take(old)
		for _, at := range []int{headAttempt, headBase} {
			binary.LittleEndian.PutUint32(r.Value()[at:], attemptOf(old))
		}
		q.table.Replace(old, r)
	}
	q.put(r, waiting, dueMicros)
	return true
}

// find is the entry with an id, delivered attempt times; 0 is any number.
func (q *Queue) find(id []byte, attempt int64) table.Record {
	r := q.table.Get(id)
	if r.None() || attempt != 0 && int64(attemptOf(r)) != attempt {
		return table.Record{}
	}
	return r
}

// Has says whether there is an entry with this id.
func (q *Queue) Has(id []byte) bool { return !q.table.Get(id).None() }

// Remove takes an entry out, whatever its state.
func (q *Queue) Remove(id []byte, attempt int64) bool {
	r := q.find(id, attempt)
	if r.None() {
		return false
	}
	q.take(r)
	q.table.Delete(r.Key())
	q.totals.Removed++
	return true
}

// Settings are the queue's defaults.
func (q *Queue) Settings() Settings { return q.settings }

// Configure sets the defaults. A queue with defaults stays when it is empty.
func (q *Queue) Configure(s Settings) { q.settings, q.kept = s, true }

// Empty says that there is nothing to keep: no entry and no defaults.
func (q *Queue) Empty() bool { return q.table.Len() == 0 && !q.kept }

// Totals are counts since the queue was made.
func (q *Queue) Totals() Totals { return q.totals }

// Clone is a copy of the queue that shares nothing with it.
func (q *Queue) Clone() *Queue {
	c := New()
	c.seq, c.settings, c.kept, c.totals = q.seq, q.settings, q.kept, q.totals
	c.table = q.table.Clone(func(r table.Record) { c.trees[placeOf(r)].Set(itemOf(r)) })
	return c
}

// Encoding is what OBJECT ENCODING calls the structure.
func (q *Queue) Encoding() string { return "btree" }

// MemoryUsage is what the queue takes, in bytes: records, table and trees, the
// latter by their usual filling.
func (q *Queue) MemoryUsage() int {
	const itemBytes = 16 * 3 / 2
	n := 400 + len(q.settings.Dead) + q.table.MemoryUsage()
	for _, t := range q.trees {
		n += t.Len() * itemBytes
	}
	return n
}

// MemoryEstimate is MemoryUsage, which takes a constant time.
func (q *Queue) MemoryEstimate() int { return q.MemoryUsage() }
