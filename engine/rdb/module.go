package rdb

// What Redis has no type for: limiters and delay queues. They are written as the
// values of modules are, which describe themselves: redis-check-rdb walks over
// them, and a Redis without the module refuses them with its own words.
//
// A value is the module's id, 9 characters of 6 bits and 10 bits of a version,
// then items, each a byte for its kind and the item, and at the end a zero.
//
//	limiter  string: its bytes, as engine/limiter has them
//	queue    numbers: 1 if it has defaults; lease, tries, first and longest
//	         backoff; added, delivered, acknowledged, failed, expired, dead and
//	         removed entries; the last sequence number
//	         string: the dead-letter queue's key
//	         for each state (waiting, leased, dying) the number of entries, and of
//	         each: strings id and payload; numbers: by how much its time is later
//	         than that of the one before, sequence number, deliveries, and those
//	         before it was replaced; unless it waits, when it fell due
//
// Times are in microseconds.

import (
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/limiter"
)

// The kinds of items.
const (
	moduleEnd    = 0
	moduleSigned = 1
	moduleNumber = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)

// The modules' names, and the version of what is written.
const (
	moduleChars   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	moduleVersion = 1
)

var (
	limiterID = moduleID("lkv-limit", moduleVersion)
	queueID   = moduleID("lkv-queue", moduleVersion)
)

const (
	moduleNameBytes   = 9
	moduleVersionBits = 10
)

func moduleID(name string, version uint64) (id uint64) {
	for i := range moduleNameBytes {
		id = id<<6 | uint64(strings.IndexByte(moduleChars, name[i]))
	}
	return id<<moduleVersionBits | version
}

// moduleName is the name in a module's id.
func moduleName(id uint64) string {
	var name [moduleNameBytes]byte
	id >>= moduleVersionBits
	for i := range name {
		name[len(name)-1-i] = moduleChars[id&63]
		id >>= 6
	}
	return string(name[:])
}

func (w *encoder) number(n uint64) {
	w.byte(moduleNumber)
	w.len(n)
}

func (w *encoder) item(s []byte) {
	w.byte(moduleString)
	w.string(s)
}

// limiterCompressed is how long a limiter is for it to be worth to try to compress it.
// What most have are a few numbers, which hardly become less, and every grant is
// logged as such an image.
const limiterCompressed = 256

func (w *encoder) limiter(p []byte) {
	w.len(limiterID)
	w.byte(moduleString)
	if len(p) < limiterCompressed {
		w.room()
		w.len(uint64(len(p)))
		w.b = append(w.b, p...)
	} else {
		w.string(p)
	}
	w.byte(moduleEnd)
}

func (w *encoder) queue(q *delayqueue.Queue) {
	w.len(queueID)
	h := q.Head()
	kept := uint64(0)
	if h.Kept {
		kept = 1
	}
	w.number(kept)
	for _, n := range headNumbers(&h) {
		w.number(uint64(*n))
	}
	w.number(h.Seq)
	w.item([]byte(h.Settings.Dead))
	for _, state := range delayqueue.SavedStates {
		w.number(uint64(q.Stored(state)))
		before := int64(0)
		q.Each(state, func(s delayqueue.Saved) {
			w.item(s.ID)
			w.item(s.Payload)
			w.number(uint64(s.AtMicros - before))
			before = s.AtMicros
			w.number(s.Seq)
			w.number(uint64(s.Attempt))
			w.number(uint64(s.Base))
			if state != delayqueue.Delayed {
				w.number(uint64(s.DueMicros))
			}
		})
	}
	w.byte(moduleEnd)
}

// headNumbers are the numbers of a queue in the order in which they are written.
func headNumbers(h *delayqueue.Head) []*int64 {
	s, t := &h.Settings, &h.Totals
	return []*int64{&s.LeaseMicros, &s.Tries, &s.BackoffMicros, &s.BackoffMaxMicros,
		&t.Added, &t.Delivered, &t.Acked, &t.Nacked, &t.Expired, &t.Dead, &t.Removed}
}

// module reads a module's value.
func (r *decoder) module() (v Value) {
	switch id := r.Len(); {
	case r.Failed():
	case id == limiterID:
		v = Value{Kind: engine.KindLimiter, String: r.item()}
		if !r.Failed() {
			r.check("Limiter", limiter.Check(v.String))
		}
		r.end()
	case id == queueID:
		v = Value{Kind: engine.KindDelayQueue, Object: r.queue()}
		r.end()
	case moduleName(id) == moduleName(limiterID) || moduleName(id) == moduleName(queueID):
		r.fail("a value of type '" + moduleName(id) + "' in the form of a later version of limitkv")
	default:
		r.fail("a value of type '" + moduleName(id) + "', which belongs to a module that is not there")
	}
	return v
}

const problemModule = "the value of a module is damaged"

// kind reads the kind of an item, which must be this one.
func (r *decoder) kind(k uint64) {
	if r.Len() != k {
		r.fail(problemModule)
	}
}

func (r *decoder) number() uint64 {
	r.kind(moduleNumber)
	return r.Len()
}

func (r *decoder) item() []byte {
	r.kind(moduleString)
	return r.String()
}

func (r *decoder) end() { r.kind(moduleEnd) }

func (r *decoder) queue() *delayqueue.Queue {
	var h delayqueue.Head
	kept := r.number()
	if kept > 1 {
		r.fail(problemModule)
	}
	h.Kept = kept == 1
	for _, n := range headNumbers(&h) {
		*n = int64(r.number())
	}
	h.Seq = r.number()
	h.Settings.Dead = string(r.item())
	if r.Failed() {
		return nil
	}
	q, err := delayqueue.Restore(h)
	if err != nil {
		r.check("Queue", err)
		return nil
	}
	for _, state := range delayqueue.SavedStates {
		at := int64(0)
		for n := r.number(); n > 0 && !r.Failed(); n-- {
			s := delayqueue.Saved{State: state, ID: r.item(), Payload: r.item()}
			at += int64(r.number())
			s.AtMicros, s.Seq = at, r.number()
			attempt, base := r.number(), r.number()
			s.Attempt, s.Base, s.DueMicros = uint32(attempt), uint32(base), at
			if state != delayqueue.Delayed {
				s.DueMicros = int64(r.number())
			}
			if attempt>>32 != 0 || base>>32 != 0 {
				r.fail(problemModule)
			}
			if !r.Failed() {
				r.check("Queue", q.RestoreEntry(s))
			}
		}
	}
	if !r.Failed() && q.Empty() {
		r.fail(problemEmpty)
	}
	return q
}
