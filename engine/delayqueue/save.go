// This file saves and restores a queue, for DUMP, RESTORE and files. It trusts nothing that it reads.

package delayqueue

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/limitkv/limitkv/engine/table"
)

// ErrCorrupt is returned for data that no queue has.
var ErrCorrupt = errors.New("delayqueue: corrupted queue")

// Limits of a queue's values. Restored data must be within them, and all operations stay within them, so that a
// restored queue can always be saved and restored again.
const (
	// TimeMax is the last moment, in the year 38,505: later times become this one.
	TimeMax = 1 << 60
	// SpanMax is the longest duration, some 142 years: longer than a client can ask for.
	SpanMax = 1 << 52
	// countMax is where counts stop.
	countMax = 1 << 62
	// seqMax bounds the numbers that order entries, and turns. A restored queue with more than half of that is
	// renumbered.
	seqMax = 1 << 62
	// attemptMax is the largest number of a delivery. After it the numbers start again.
	attemptMax = 1 << 31
)

// count adds to a count.
func count(n *int64, by int) { *n = min(*n+int64(by), countMax) }

// span tells whether a duration is within the limits, moment whether a time is.
func span(micros int64) bool { return micros >= 0 && micros <= SpanMax }

func moment(micros int64) bool { return micros >= 0 && micros <= TimeMax }

// Head is what a queue has besides its entries.
type Head struct {
	Settings Settings
	// Kept tells whether the queue has defaults, and so stays when it is empty.
	Kept   bool
	Totals Totals
	// Seq is the last number by which entries of the same time are ordered.
	Seq uint64
}

// Saved is an entry with all that the queue knows of it.
type Saved struct {
	ID, Payload []byte
	State       State // Delayed, also if it is due, Leased, Dying, Remembered or Behind
	// AtMicros is the time that belongs to its state: when it falls due, its lease ends, or it died. DueMicros is when
	// it fell due.
	AtMicros, DueMicros int64
	Seq                 uint64
	Attempt, Base       uint32 // deliveries, and those before it was last replaced
	Extra               []byte // as ParseExtra reads it
}

// SavedStates are the states in which entries are stored, in the order of places.
var SavedStates = [...]State{Delayed, Leased, Dying, Remembered, Behind}

// keptAt is the place of entries stored in a state. Any and Ready have none: entries that are ready are stored as
// Delayed.
func keptAt(state State) place {
	i := slices.Index(SavedStates[:], state)
	if i < 0 {
		panic("delayqueue: nothing is kept in this state")
	}
	return place(i)
}

// Head returns what the queue has besides its entries.
func (q *Queue) Head() Head { return Head{q.settings, q.kept, q.totals, q.seq} }

// Stored is how many entries are stored in a state.
func (q *Queue) Stored(state State) int {
	switch state {
	case Remembered:
		return q.Remembered()
	case Behind:
		return q.Behind()
	}
	n := q.trees[keptAt(state)].Len()
	if state == Delayed && q.rank != nil {
		n += q.rank.byTime.Len()
	}
	return n
}

// Each calls fn with the entries that are stored in a state, in order of their times. fn must not change the queue.
func (q *Queue) Each(state State, fn func(Saved)) {
	q.eachFrom(keptAt(state), item{}, func(it item) bool {
		fn(savedOf(it.record))
		return true
	})
}

// savedOf is all that the queue knows of a record.
func savedOf(r table.Record) Saved {
	head := r.Value()
	extra, payload := split(r)
	return Saved{
		ID:        idOf(r),
		Payload:   payload,
		Extra:     extra,
		State:     SavedStates[placeOf(r)],
		AtMicros:  itemOf(r).at,
		DueMicros: dueAt(r),
		Seq:       seqOf(r),
		Attempt:   attemptOf(r),
		Base:      binary.LittleEndian.Uint32(head[headBase:]),
	}
}

// Restore makes a queue without entries from what Head returned.
func Restore(h Head) (*Queue, error) {
	s, t := h.Settings, h.Totals
	for _, micros := range []int64{s.LeaseMicros, s.BackoffMicros, s.BackoffMaxMicros} {
		if !span(micros) {
			return nil, ErrCorrupt
		}
	}
	for _, n := range []int64{s.Tries, s.MaxLen, s.GroupConc, t.Added, t.Delivered, t.Acked, t.Nacked, t.Expired, t.Dead, t.Removed, t.Overdue} {
		if n < 0 || n > countMax {
			return nil, ErrCorrupt
		}
	}
	if h.Seq > seqMax || !h.Kept && s != (Settings{}) {
		return nil, ErrCorrupt
	}
	q := New()
	q.settings, q.kept, q.totals, q.seq = s, h.Kept, t, h.Seq
	q.noteLimit()
	if q.setRules(s.GroupRules) != nil {
		return nil, ErrCorrupt
	}
	return q, nil
}

// RestoreEntry adds an entry that Each returned. It copies the id and the payload.
func (q *Queue) RestoreEntry(s Saved) error {
	i := slices.Index(SavedStates[:], s.State)
	in := place(i)
	if i < 0 || in.falling() && s.AtMicros != s.DueMicros {
		return ErrCorrupt
	}
	if _, err := ParseExtra(s.Extra); err != nil || in == remembered && len(s.Extra)+len(s.Payload) > 0 {
		return ErrCorrupt
	}
	if in == behind && !q.precedes(s.ID) {
		return ErrCorrupt
	}
	key := keyOf(s.ID, in)
	if !IDStored(s.ID) || !moment(s.AtMicros) || !moment(s.DueMicros) ||
		s.Seq == 0 || s.Seq > q.seq || s.Attempt > attemptMax || s.Base > s.Attempt || !q.table.Get(key).None() {
		return ErrCorrupt
	}
	r := newRecord(key, s.Payload, s.Extra)
	head := r.Value()
	binary.LittleEndian.PutUint64(head[headAt:], uint64(s.AtMicros))
	binary.LittleEndian.PutUint64(head[headDue:], uint64(s.DueMicros))
	binary.LittleEndian.PutUint64(head[headSeq:], s.Seq)
	binary.LittleEndian.PutUint32(head[headAttempt:], s.Attempt)
	binary.LittleEndian.PutUint32(head[headBase:], s.Base)
	head[headPlace] |= byte(in)
	if q.enter(r) {
		return ErrCorrupt // the queue is now as broken as its data
	}
	q.table.Add(r)
	return nil
}

// RestoreOrder must be called when all entries are added. It checks the numbers that order entries of the same time,
// and renumbers them if they are too large.
func (q *Queue) RestoreOrder() error {
	records := make([]table.Record, 0, q.table.Len())
	for in := range behind + 1 {
		q.eachFrom(in, item{}, func(it item) bool {
			records = append(records, it.record)
			return true
		})
	}
	numbers := make([]uint64, len(records))
	for i, r := range records {
		numbers[i] = seqOf(r)
	}
	slices.Sort(numbers)
	for i := 1; i < len(numbers); i++ {
		if numbers[i] == numbers[i-1] { // two could get the same place in a tree
			return ErrCorrupt
		}
	}
	if q.seq <= seqMax/2 {
		return nil
	}
	for _, r := range records { // the order stays the same, and so do the trees
		i, _ := slices.BinarySearch(numbers, seqOf(r))
		binary.LittleEndian.PutUint64(r.Value()[headSeq:], uint64(i+1))
	}
	q.seq = uint64(len(numbers))
	return nil
}
