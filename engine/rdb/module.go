package rdb

// Limiters, delay queues and locks have no type in Redis. They are written as values of modules, which are
// self-describing: redis-check-rdb can skip them, and a Redis without the module refuses them with its own error.
//
// A value is the module's id (9 characters of 6 bits, and 10 bits for a version), then items, each a byte for its kind
// and the item, and a zero at the end.
//
//	limiter  string: its bytes, as engine/limiter encodes them
//	         version 2, for limiters that need it: that string; string: what buckets were given back; number of open
//	         named grants, and of each: strings: id, grant
//	queue    see queue.go
//	lock     numbers: mode (0 exclusive, 1 readers, 2 permits), permits, until when nobody gets it, number of holders,
//	         and of each: string: its name; numbers: fence, end of the lease (0 if it is bound to a connection), the
//	         delay after it, permits taken
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
	// queueIDs are the ids of all versions, from 1 on.
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

// limiterCompressed is the least size of a limiter that is worth compressing. Most limiters are a few numbers, which
// hardly compress, and every grant is logged in this form.
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

// state writes a limiter's bytes in their wide form.
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

// named writes a limiter in the form that may contain named grants.
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

// queueVersionOf is the version of a queue's encoding for a module id, 0 if the id is not a queue's.
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

// kind reads the kind of an item, which must be k.
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
