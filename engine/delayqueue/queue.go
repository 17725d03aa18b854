// Package delayqueue, internal to the server, is the delay queue: entries with an id and a payload that fall due at a
// time, are taken in that order, and may be leased instead of removed, so that nothing is lost when a worker dies. It
// knows no key, lock, clock or protocol; times are parameters, in Unix microseconds.
//
// An entry is one record without pointers in a hash table by id. Three trees hold the records in order of time: those
// that wait (due or not yet), those that are leased, and those that have failed for good and are on their way to the
// dead-letter queue. A heap would be a little smaller than a tree, but could not count or list what is due. An entry
// takes about 130 bytes, with an id and a payload of 32 bytes together.
//
// All operations are O(log n) for an entry, and those that may concern many entries take a maximum.
package delayqueue

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/engine/table"
)

// State is the state of an entry.
type State uint8

const (
	// Any is every state, as an argument.
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
	// Remembered are ids whose entries are done. They are no entries.
	Remembered
	// Behind are new versions of leased entries, which wait until the leases are over. They are no entries yet.
	Behind
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
	// MaxLen is how many entries there can be before Full; 0 = any number.
	MaxLen int64
	// Paused stops all deliveries.
	Paused bool
	// Limit is the key of the limiter from which each delivery takes one, "" for none.
	Limit string
	// GroupConc is how many entries of a group can be leased at once; 0 = any number.
	GroupConc int64
	// GroupRules are the rules of the limiter that each group has, as ParseRules reads them; "" for none.
	GroupRules string
}

// Totals are counts since the queue was made.
type Totals struct {
	Added, Delivered, Acked, Nacked, Expired, Dead, Removed int64
	// Overdue counts entries that nobody took before they expired; Expired counts leases.
	Overdue int64
}

// Entry is one entry as it is delivered. ID and Payload alias the queue's memory and are valid until the next write.
type Entry struct {
	ID, Payload []byte
	DueMicros   int64 // when it fell or falls due
	Attempt     int64 // how often it was delivered
	State       State
	// UntilMicros is when the lease of a leased entry ends.
	UntilMicros int64
	extra       []byte
}

// Extra is the entry's optional fields. Its texts alias the queue's memory.
func (e *Entry) Extra() (x Extra) {
	x, _ = ParseExtra(e.extra) // it was made by Append, or checked
	return x
}

// Queue is a delay queue, made with New.
type Queue struct {
	table table.Table
	trees [3]*btree.BTreeG[item] // by place: waiting, leased, dying
	// done has the remembered ids, by the time until which they are remembered; late has the waiting entries that
	// expire, by when they do. Both are nil until there are any.
	done, late *btree.BTreeG[item]
	behind     *btree.BTreeG[item]  // new versions of leased entries, by when they fall due; nil until there are any
	schedules  map[string]*schedule // nil until there are any
	// template is a group's limiter at first, nil for none.
	template []byte
	// rules counts the changes of GroupRules. A group's limiter with earlier rules is ignored.
	rules    uint64
	rank     *ranks // nil while no entry has a group or a priority
	seq      uint64
	settings Settings
	kept     bool
	totals   Totals
	image    *Image // nil unless one is under way
	searches []*Search
}

// place is the tree that an entry is in.
type place uint8

const (
	waiting place = iota
	leased
	dying
	// remembered is only an id, no entry any more.
	remembered
	// behind is a new version of an entry that is leased.
	behind
	placeMask = 0x0f
	extraBit  = 0x80 // the record has an Extra
	rankBit   = 0x40 // and that has a group or a priority
)

// falling tells whether the time of a record in a place is its due time, too.
func (in place) falling() bool { return in == waiting || in == remembered || in == behind }

// item is an entry in a tree, with a copy of the time that orders it there.
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
	headAt      = 0  // int64: the time that orders it in its tree
	headDue     = 8  // int64: when it fell due
	headSeq     = 16 // uint64: order among equal times
	headAttempt = 24 // uint32: deliveries
	headBase    = 28 // uint32: those deliveries that were before it was last replaced
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

// setAttempt stores in a new record how often its entry was delivered before. Its tries start anew.
func setAttempt(r table.Record, n uint32) {
	binary.LittleEndian.PutUint32(r.Value()[headAttempt:], n)
	binary.LittleEndian.PutUint32(r.Value()[headBase:], n)
}

func itemOf(r table.Record) item {
	return item{int64(binary.LittleEndian.Uint64(r.Value()[headAt:])), r}
}

func placeOf(r table.Record) place { return place(r.Value()[headPlace] & placeMask) }

func dueAt(r table.Record) int64 {
	return int64(binary.LittleEndian.Uint64(r.Value()[headDue:]))
}

// New makes an empty queue.
func New() *Queue {
	q := &Queue{}
	for i := range q.trees {
		q.trees[i] = newTree()
	}
	return q
}

func newTree() *btree.BTreeG[item] {
	return btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})
}

// put puts a record, which is in no tree, into the tree of a place, at a time.
func (q *Queue) put(r table.Record, in place, at int64) {
	head := r.Value()
	at = min(at, TimeMax)
	binary.LittleEndian.PutUint64(head[headAt:], uint64(at))
	head[headPlace] = head[headPlace]&^placeMask | byte(in)
	if in.falling() {
		// It falls due then, after the entries that already fall due at that time.
		q.seq++
		binary.LittleEndian.PutUint64(head[headDue:], uint64(at))
		binary.LittleEndian.PutUint64(head[headSeq:], q.seq)
	}
	if q.image != nil {
		q.image.noted[r] = struct{}{}
	}
	for _, l := range q.searches {
		l.note(r)
	}
	q.enter(r)
}

// enter puts a record into the trees that it belongs to.
func (q *Queue) enter(r table.Record) (twice bool) {
	if hasExtra(r) {
		if at, ok := lateOf(r); ok {
			if q.late == nil {
				q.late = newTree()
			}
			q.late.Set(item{at, r})
		}
	}
	if ranked(r) {
		return q.enterRanked(r)
	}
	_, twice = q.tree(r).Load(itemOf(r)) // fast if the time is the latest so far
	if q.rank != nil {
		q.refresh(q.rank.plain)
	}
	return twice
}

// tree is the tree of a record's place.
func (q *Queue) tree(r table.Record) *btree.BTreeG[item] {
	besides := &q.done
	switch in := placeOf(r); in {
	case remembered:
	case behind:
		besides = &q.behind
	default:
		return q.trees[in]
	}
	if *besides == nil {
		*besides = newTree()
	}
	return *besides
}

// take removes a record from its trees.
func (q *Queue) take(r table.Record) {
	q.keep(r)
	q.unlate(r)
	if ranked(r) {
		q.takeRanked(r)
		return
	}
	q.tree(r).Delete(itemOf(r))
	if q.rank != nil {
		q.refresh(q.rank.plain)
	}
}

// unlate removes a record from late.
func (q *Queue) unlate(r table.Record) {
	if hasExtra(r) {
		if at, ok := lateOf(r); ok {
			q.late.Delete(item{at, r})
		}
	}
}

// lateOf is when a waiting entry expires.
func lateOf(r table.Record) (at int64, ok bool) {
	if placeOf(r) != waiting {
		return 0, false
	}
	x := extraOf(r)
	return dueAt(r) + x.ExpireMicros, x.ExpireMicros > 0
}

// entry is a record as it is delivered at now.
func entry(r table.Record, now int64) Entry {
	extra, payload := split(r)
	e := Entry{
		ID:        r.Key(),
		Payload:   payload,
		DueMicros: dueAt(r),
		Attempt:   int64(attemptOf(r)),
		extra:     extra,
	}
	switch e.State = SavedStates[placeOf(r)]; {
	case e.State == Leased:
		e.UntilMicros = itemOf(r).at
	case e.State == Delayed && e.DueMicros <= now:
		e.State = Ready
	}
	return e
}

// Mode is the condition of an Add.
type Mode uint8

const (
	// Put adds, or replaces and reschedules.
	Put Mode = iota
	// OnlyNew adds only an id that does not exist.
	OnlyNew
	// OnlyOld replaces and reschedules only an id that exists.
	OnlyOld
)

// Add adds an entry that falls due at a time, or replaces the one with its id, whatever its state. It returns whether
// the condition was met; a remembered id is never added. x may be nil; Add changes it if MAXWAIT counts from an earlier
// time.
//
// A leased entry stays with its worker: the new version waits until the lease is over (behind.go), and is not added if
// the id is unique. The count of deliveries continues, so that an earlier worker's id#attempt stays stale, but the
// tries start anew.
func (q *Queue) Add(now int64, id, payload []byte, dueMicros int64, x *Extra, mode Mode) bool {
	old := q.table.Get(id)
	if taken(old, x) {
		return false
	}
	return q.add(now, old, id, payload, dueMicros, 0, x, mode)
}

// Bury is Add for a dead letter, which was delivered attempt times before it died. Its tries start anew.
func (q *Queue) Bury(now int64, id, payload []byte, dueMicros, attempt int64, x *Extra) {
	q.add(now, q.table.Get(id), id, payload, dueMicros, uint32(min(attempt, attemptMax)), x, Put)
}

// add is Add where the table has old under the id, which may be no record.
func (q *Queue) add(now int64, old table.Record, id, payload []byte, dueMicros int64, attempt uint32, x *Extra, mode Mode) bool {
	if !old.None() && placeOf(old) == remembered {
		if itemOf(old).at > now {
			return false
		}
		q.forget(old)
		old = table.Record{}
	}
	if q.Scheduled(id) {
		if mode == OnlyNew {
			return false
		}
		defer q.unpin(q.pin(q.present(q.schedules[string(id)])))
		q.Unschedule(id)
		mode = Put
	}
	if old.None() && mode == OnlyOld || !old.None() && mode == OnlyNew {
		return false
	}
	if !old.None() && placeOf(old) == leased {
		q.addBehind(now, id, payload, dueMicros, attempt, x)
		return true
	}
	if x != nil || !old.None() && hasExtra(old) {
		if x == nil {
			x = &Extra{}
		}
		dueMicros = x.putOff(old, now, dueMicros)
		x.Occurrence = q.scheduleOf(id) != nil // a replaced occurrence stays one
	}
	r := newRecord(id, payload, x.Append(nil))
	if old.None() {
		q.table.Add(r)
		count(&q.totals.Added, 1)
	} else {
		g := q.pin(old)
		defer q.unpin(g)
		q.take(old)
		q.dropBehind(id)
		attempt = max(attempt, attemptOf(old))
		q.table.Replace(old, r)
	}
	setAttempt(r, attempt)
	q.put(r, waiting, dueMicros)
	return true
}

// Full says that the queue has as many entries as Settings.MaxLen allows.
func (q *Queue) Full() bool { return q.settings.MaxLen > 0 && int64(q.Len()) >= q.settings.MaxLen }

// find is the entry with an id that was delivered attempt times; 0 means any number.
func (q *Queue) find(id []byte, attempt int64) table.Record {
	r := q.table.Get(id)
	if r.None() || placeOf(r) >= remembered || attempt != 0 && int64(attemptOf(r)) != attempt {
		return table.Record{}
	}
	return r
}

// Has says whether there is an entry with this id.
func (q *Queue) Has(id []byte) bool { return !q.find(id, 0).None() }

// Knows says whether this id is an entry's, or remembered.
func (q *Queue) Knows(id []byte) bool { return !q.table.Get(id).None() }

// Remove removes an entry, whatever its state, with the new version behind it, and ends a schedule, or forgets an id.
func (q *Queue) Remove(id []byte, attempt, now int64) bool {
	ended := attempt == 0 && q.Unschedule(id)
	if ended {
		count(&q.totals.Removed, 1)
	}
	r := q.table.Get(id)
	switch {
	case r.None() || placeOf(r) == behind || attempt != 0 && int64(attemptOf(r)) != attempt:
		return ended
	case placeOf(r) == remembered:
		q.forget(r)
		return true
	}
	defer q.unpin(q.pin(r))
	q.take(r)
	q.dropBehind(id)
	q.leave(r, now, false)
	count(&q.totals.Removed, 1)
	return true
}

// Settings are the queue's defaults.
func (q *Queue) Settings() Settings { return q.settings }

// Configure sets the defaults. A queue with defaults stays when it is empty.
func (q *Queue) Configure(s Settings) {
	was := q.settings
	q.settings, q.kept = s, true
	q.noteLimit()
	if s.GroupRules != was.GroupRules && q.setRules(s.GroupRules) != nil {
		panic("delayqueue: rules that were not checked")
	}
}

// Limit is Settings.Limit.
func (q *Queue) Limit() string { return q.settings.Limit }

// limited is set once a queue has a limit. Until then nobody needs to look for one.
var limited atomic.Bool

// AnyLimited tells whether there may be a queue with a limit.
func AnyLimited() bool { return limited.Load() }

func (q *Queue) noteLimit() {
	if q.settings.Limit != "" {
		limited.Store(true)
	}
}

// Empty says that the queue can be removed: it has no entry, no remembered id, no schedule and no defaults.
func (q *Queue) Empty() bool { return q.table.Len() == 0 && !q.kept && len(q.schedules) == 0 }

// Totals are counts since the queue was made.
func (q *Queue) Totals() Totals { return q.totals }

// Clone is a copy of the queue that shares nothing with it.
func (q *Queue) Clone() *Queue {
	c := New()
	c.template = q.template
	c.seq, c.settings, c.kept, c.totals = q.seq, q.settings, q.kept, q.totals
	c.table = q.table.Clone(func(r table.Record) { c.enter(r) })
	for _, s := range q.Schedules() {
		if err := c.RestoreSchedule(s); err != nil {
			panic("delayqueue: a copy has other schedules")
		}
	}
	if err := c.RestoreTurns(q.Turns()); err != nil {
		panic("delayqueue: a copy has other groups")
	}
	return c
}

// Encoding is what OBJECT ENCODING calls the structure.
func (q *Queue) Encoding() string { return "btree" }

// MemoryUsage is how many bytes the queue takes: records, table and trees, the latter by their usual filling.
func (q *Queue) MemoryUsage() int {
	const itemBytes = 16 * 3 / 2
	n := 420 + len(q.settings.Dead) + len(q.settings.Limit) + q.table.MemoryUsage()
	for _, t := range q.trees {
		n += t.Len() * itemBytes
	}
	for _, t := range []*btree.BTreeG[item]{q.done, q.late, q.behind} {
		if t != nil {
			n += t.Len() * itemBytes
		}
	}
	for _, s := range q.schedules {
		n += 500 + len(s.ID) + len(s.Payload)
	}
	if k := q.rank; k != nil {
		const groupBytes = 180 // with its places in the map and a tree
		n += k.byTime.Len()*itemBytes*5/2 + len(k.groups)*groupBytes
	}
	return n
}

// MemoryEstimate is MemoryUsage, which takes a constant time.
func (q *Queue) MemoryEstimate() int { return q.MemoryUsage() }
