// This file takes a queue apart and puts it together again: DUMP, RESTORE and
// files. What comes from there is trusted in nothing.
package delayqueue

import (
	"encoding/binary"
	"errors"

	"github.com/limitkv/limitkv/engine/table"
)

// ErrCorrupt is returned for parts that no queue has.
var ErrCorrupt = errors.New("delayqueue: corrupted queue")

// Bounds of what is taken over. They are far above what a client can reach, and
// leave room to count on.
const (
	microsMax  = 1 << 60
	seqMax     = 1 << 62
	attemptMax = 1 << 31
)

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
	State       State // Delayed, which is for due ones too, Leased or Dying
	// AtMicros is the time that counts in its state: when it falls due, its lease
	// ends, or it died. DueMicros is when it fell due.
	AtMicros, DueMicros int64
	Seq                 uint64
	Attempt, Base       uint32 // deliveries; those before it was last replaced
}

// SavedStates are the states that entries are kept in, each in order of its time.
var SavedStates = [...]State{Delayed, Leased, Dying}

var places = map[State]place{Delayed: waiting, Leased: leased, Dying: dying}

// Head returns what the queue has besides its entries.
func (q *Queue) Head() Head { return Head{q.settings, q.kept, q.totals, q.seq} }

// Stored is how many entries are kept in a state.
func (q *Queue) Stored(state State) int { return q.trees[places[state]].Len() }

// Each calls fn with the entries that are kept in a state, in order of their times.
// fn must not change the queue.
func (q *Queue) Each(state State, fn func(Saved)) {
	q.trees[places[state]].Scan(func(it item) bool {
		head := it.record.Value()
		fn(Saved{
			ID:        it.record.Key(),
			Payload:   head[headSize:],
			State:     state,
			AtMicros:  it.at,
			DueMicros: int64(binary.LittleEndian.Uint64(head[headDue:])),
			Seq:       seqOf(it.record),
			Attempt:   attemptOf(it.record),
			Base:      binary.LittleEndian.Uint32(head[headBase:]),
		})
		return true
	})
}

// Restore makes a queue without entries of what Head returned.
func Restore(h Head) (*Queue, error) {
	s, t := h.Settings, h.Totals
	for _, micros := range []int64{s.LeaseMicros, s.BackoffMicros, s.BackoffMaxMicros} {
		if micros < 0 || micros > microsMax {
			return nil, ErrCorrupt
		}
	}
	for _, n := range []int64{s.Tries, t.Added, t.Delivered, t.Acked, t.Nacked, t.Expired, t.Dead, t.Removed} {
		if n < 0 || n > seqMax {
			return nil, ErrCorrupt
		}
	}
	if h.Seq > seqMax || !h.Kept && s != (Settings{}) {
		return nil, ErrCorrupt
	}
	q := New()
	q.settings, q.kept, q.totals, q.seq = s, h.Kept, t, h.Seq
	return q, nil
}

// RestoreEntry adds an entry that Each returned. It copies the id and the payload.
func (q *Queue) RestoreEntry(s Saved) error {
	in, ok := places[s.State]
	if !ok || in == waiting && s.AtMicros != s.DueMicros {
		return ErrCorrupt
	}
	if CheckID(s.ID) != nil || s.AtMicros < 0 || s.AtMicros > microsMax || s.DueMicros < 0 || s.DueMicros > microsMax ||
		s.Seq == 0 || s.Seq > q.seq || s.Attempt > attemptMax || s.Base > s.Attempt || !q.table.Get(s.ID).None() {
		return ErrCorrupt
	}
	r := table.NewRecord(s.ID, headSize+len(s.Payload), false)
	head := r.Value()
	binary.LittleEndian.PutUint64(head[headAt:], uint64(s.AtMicros))
	binary.LittleEndian.PutUint64(head[headDue:], uint64(s.DueMicros))
	binary.LittleEndian.PutUint64(head[headSeq:], s.Seq)
	binary.LittleEndian.PutUint32(head[headAttempt:], s.Attempt)
	binary.LittleEndian.PutUint32(head[headBase:], s.Base)
	head[headPlace] = byte(in)
	copy(head[headSize:], s.Payload)
	if _, twice := q.trees[in].Load(item{s.AtMicros, r}); twice {
		return ErrCorrupt // the queue is as broken as what it was made of
	}
	q.table.Add(r)
	return nil
}
