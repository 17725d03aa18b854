package rdb

// What Redis has no type for: limiters, delay queues and locks. They are written as the
// values of modules are, which describe themselves: redis-check-rdb walks over
// them, and a Redis without the module refuses them with its own words.
//
// A value is the module's id, 9 characters of 6 bits and 10 bits of a version,
// then items, each a byte for its kind and the item, and at the end a zero.
//
//	limiter  string: its bytes, as engine/limiter has them. In version 2, which
//	         those have that are new in it: a string and a number: what buckets were
//	         given back, and how many named grants are open; strings: id and grant
//	queue    as queue.go tells
//
//	lock     numbers: how it is held (0 alone, 1 by readers, 2 permits), permits, until when nobody gets it, the number
//	         of holders, and of each: string: its name; numbers: fence, the lease's end (0 if it is bound to a
//	         connection), the delay after it, permits taken
//
// Times are in microseconds.

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/lock"
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
	queueVersion  = 3
)

var (
	limiterID = moduleID("lkv-limit", moduleVersion)
	lockID    = moduleID("lkv-locks", moduleVersion)
	namedID   = moduleID("lkv-limit", 2)
	queueID   = queueIDs[queueVersion-1]
	// queueIDs are those of all versions, from the first one on.
	queueIDs = [queueVersion]uint64{moduleID("lkv-queue", 1), moduleID("lkv-queue", 2), moduleID("lkv-queue", 3)}
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
	if limiter.Version(p) > moduleVersion {
		w.named(limiter.NewNamed(p))
		return
	}
	w.len(limiterID)
	w.state(p)
	w.byte(moduleEnd)
}

// state writes a limiter's bytes, in their wide form.
func (w *encoder) state(p []byte) {
	var buf [limiterCompressed]byte
	p = limiter.AppendWide(buf[:0], p)
	if len(p) >= limiterCompressed {
		w.item(p)
		return
	}
	w.byte(moduleString)
	w.room()
	w.len(uint64(len(p)))
	w.b = append(w.b, p...)
}

// named writes a limiter that may have named grants.
func (w *encoder) named(n *limiter.Named) {
	w.len(namedID)
	w.state(n.State())
	w.item(n.AppendGiven(nil))
	w.number(uint64(n.Len()))
	n.Each(func(id, saved []byte) {
		w.item(id)
		w.item(saved)
	})
	w.byte(moduleEnd)
}

// readNamed reads what named wrote: plain bytes if no grant is open.
func (r *decoder) readNamed() (v Value) {
	p := r.item()
	if r.Failed() {
		return v
	}
	if err := limiter.Check(p); err != nil {
		r.check("Limiter", err)
		return v
	}
	n := limiter.NewNamed(bytes.Clone(p))
	if err := n.SetGiven(r.item()); err != nil && !r.Failed() {
		r.check("Limiter", err)
	}
	for left := r.number(); left > 0 && !r.Failed(); left-- {
		id, saved := r.item(), r.item()
		switch {
		case r.Failed():
		case len(saved) == 0 || n.Has(id):
			r.fail(problemModule)
		default:
			r.check("Limiter", n.Restore(id, saved))
		}
	}
	if r.Failed() {
		return v
	}
	r.check("Limiter", n.Check())
	if v.Kind = engine.KindLimiter; n.Len() > 0 {
		v.Object = n
	} else {
		v.String = n.State()
	}
	return v
}

// queueVersionOf is the version of a queue's encoding that an id stands for, 0 if it is no queue's.
func queueVersionOf(id uint64) int {
	for i, of := range queueIDs {
		if of == id {
			return i + 1
		}
	}
	return 0
}

// module reads a module's value.
func (r *decoder) module() (v Value) {
	switch id := r.Len(); {
	case r.Failed():
	case id == limiterID:
		v = Value{Kind: engine.KindLimiter, String: r.item()}
		if !r.Failed() {
			r.check("Limiter", limiter.CheckPlain(v.String))
		}
		r.end()
	case id == namedID:
		v = r.readNamed()
		r.end()
	case queueVersionOf(id) != 0:
		v = Value{Kind: engine.KindDelayQueue, Object: r.queue(queueVersionOf(id))}
		r.end()
	case id == lockID:
		v = Value{Kind: engine.KindLock}
		if l := r.lock(); l != nil {
			if p, ok := l.Append(nil); ok {
				v.String = p
			} else {
				v.Object = l.Large()
			}
		}
		r.end()
	case moduleName(id) == moduleName(limiterID) || moduleName(id) == moduleName(queueID) || moduleName(id) == moduleName(lockID):
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

func (w *encoder) lock(l *lock.Lock) {
	w.len(lockID)
	for _, n := range []int64{int64(l.Mode), l.Permits, l.ClosedMicros, int64(l.Len())} {
		w.number(uint64(n))
	}
	l.Each(func(h lock.Holder) bool {
		w.item(h.Owner)
		for _, n := range []int64{h.Fence, h.UntilMicros, h.DelayMicros, h.Take} {
			w.number(uint64(n))
		}
		return true
	})
	w.byte(moduleEnd)
}

func (r *decoder) lock() *lock.Lock {
	mode, permits, closed, n := r.number(), r.number(), r.number(), r.number()
	if mode > uint64(lock.Permits) || r.Failed() {
		r.fail(problemModule)
		return nil
	}
	l, err := lock.Restore(lock.Mode(mode), int64(permits), int64(closed), int(min(n, lock.HoldersMax)))
	for ; n > 0 && err == nil && !r.Failed(); n-- {
		h := lock.Holder{Owner: r.item()}
		for _, to := range []*int64{&h.Fence, &h.UntilMicros, &h.DelayMicros, &h.Take} {
			*to = int64(r.number())
		}
		if !r.Failed() {
			err = l.RestoreHolder(h)
		}
	}
	switch {
	case r.Failed():
		return nil
	case err != nil:
		r.check("Lock", err)
		return nil
	case l.Free():
		r.fail(problemEmpty)
		return nil
	}
	return l
}
