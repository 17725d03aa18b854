// Package lock, internal to the server, is the structure behind a lock's key: who holds it, until when, and what that
// allows others. One type serves as mutex, readers-writer lock and semaphore.
//
// A lock has no clock: each call passes the time, in Unix microseconds. Nor does it know who waits. The line belongs to
// the keyspace, so all waiters have one order, whatever they ask for.
//
// A lock without holders does not exist: its key is removed. Only the delay after a lost lease keeps it, until that is
// over.
//
// Nearly all locks have one holder. With up to holdersPacked holders a lock is stored as bytes (packed.go), a mutex as
// some 30; only larger locks have indices (large.go).
// only larger locks have indices (large.go).
package lock

import (
	"errors"
	"math"
)

// Mode is how a lock is held.
type Mode uint8

// The modes. All holders of a lock have the same one.
const (
	Alone   Mode = iota // by one owner
	Shared              // by readers, any number
	Permits             // by owners that took some of its permits
)

var modeNames = [...]string{"alone", "shared", "permits"}

// String is the mode's name, as LK.INFO shows it.
func (m Mode) String() string { return modeNames[m] }

// Holder is an owner that holds a lock.
type Holder struct {
	Owner []byte
	// Fence is the number of the grant. Each grant has a greater number than all before it.
	Fence int64
	// UntilMicros is when the lease ends, 0 if it is bound to a connection.
	UntilMicros int64
	// DelayMicros is how long nobody gets the lock if the lease ends without a release.
	DelayMicros int64
	// Session is the connection that the lease is bound to, or that is notified of its loss; 0 for none. Sessions exist
	// in this process only: a holder from elsewhere has none, and a bound lease without one has ended.
	Session int64
	// Take is how many permits it has; 1 in other modes.
	Take int64
}

// Bound tells whether the lease is bound to a connection.
func (h *Holder) Bound() bool { return h.UntilMicros == 0 }

const (
	never = math.MaxInt64
	gone  = 1 // the end of a lease that is bound to a connection that no longer exists
)

// endMicros is when the lease ends by itself.
func (h *Holder) endMicros() int64 {
	switch {
	case h.UntilMicros != 0:
		return h.UntilMicros
	case h.Session == 0:
		return gone
	}
	return never
}

// Lock is a lock. The zero value is a free one.
type Lock struct {
	Mode Mode
	// Permits is how many there are in all, Taken how many are taken.
	Permits, Taken int64
	// ClosedMicros is the end of a delay, until which nobody gets the lock; 0 if there is no delay.
	ClosedMicros int64

	few   [holdersPacked + 1]Holder // in order of their fences; unused if large is set
	n     int                       // how many of them there are
	large *large
}

// Limits.
const (
	// OwnerMax is how long an owner's name can be.
	OwnerMax = 512
	// PermitsMax is the most permits of a lock.
	PermitsMax = 1_000_000_000
	// HoldersMax is the most holders of a lock.
	HoldersMax = 1 << 20
)

// Errors of Acquire.
var (
	// ErrRefused: others hold the lock, or wait before the caller, or a delay is not over.
	ErrRefused = errors.New("lock: refused")
	// ErrPermits: the lock is held with another total number of permits.
	ErrPermits = errors.New("lock: the number of permits differs")
	// ErrOtherwise: the owner holds it already, in another mode or with another number of permits.
	ErrOtherwise = errors.New("lock: held otherwise by this owner")
	// ErrHolders: there are HoldersMax holders.
	ErrHolders = errors.New("lock: too many holders")
	// ErrFences: no greater fence is left.
	ErrFences = errors.New("lock: no fence is left")
)

// Ask is a request for a lock.
type Ask struct {
	Owner []byte
	// UntilMicros, DelayMicros, Session and Take become the holder's.
	UntilMicros, DelayMicros, Session, Take int64
	Mode                                    Mode
	Permits                                 int64
	// Behind: others wait before the caller, so it gets nothing new.
	Behind bool
}

// Acquire grants what is asked for, or returns why not. If the owner already holds the lock in this way, its lease is
// renewed and keeps its fence, and renewed is true. next returns a new fence, 0 if none is left.
func (l *Lock) Acquire(a *Ask, now int64, next func() int64) (fence int64, renewed bool, err error) {
	if h := l.Find(a.Owner); h != nil {
		switch {
		case l.Mode == a.Mode && h.Take == a.Take && l.Permits == a.Permits:
		case l.Mode == Alone && a.Mode == Shared: // a writer continues as a reader
			l.Mode = Shared
		case l.Mode == Permits && a.Mode == Permits && l.Permits != a.Permits:
			return 0, false, ErrPermits
		default:
			return 0, false, ErrOtherwise
		}
		l.change(h, a.UntilMicros, a.DelayMicros, a.Session)
		return h.Fence, true, nil
	}
	n := l.Len()
	switch {
	case n == 0:
	case l.Mode != a.Mode || a.Mode == Alone:
		return 0, false, ErrRefused
	case l.Permits != a.Permits:
		return 0, false, ErrPermits
	case a.Mode == Permits && l.Taken+a.Take > l.Permits:
		return 0, false, ErrRefused
	case n >= HoldersMax:
		return 0, false, ErrHolders
	}
	if a.Behind || l.ClosedMicros > now {
		return 0, false, ErrRefused
	}
	if fence = next(); fence == 0 {
		return 0, false, ErrFences
	}
	l.Mode, l.Permits = a.Mode, a.Permits
	l.add(Holder{Owner: a.Owner, Fence: fence, UntilMicros: a.UntilMicros, DelayMicros: a.DelayMicros, Session: a.Session, Take: a.Take})
	return fence, false, nil
}

// Touch renews an owner's lease. It returns the holder, nil if it has no lease at now.
func (l *Lock) Touch(owner []byte, now, untilMicros, session int64) *Holder {
	h := l.Held(owner, now)
	if h != nil {
		l.change(h, untilMicros, h.DelayMicros, session)
	}
	return h
}

// Held is the holder with a name, nil if there is none or its lease has ended by now.
func (l *Lock) Held(owner []byte, now int64) *Holder {
	if h := l.Find(owner); h != nil && h.endMicros() > now {
		return h
	}
	return nil
}

// Guards tells whether the grant with a fence is valid at now.
func (l *Lock) Guards(fence, now int64) bool {
	h := l.ByFence(fence)
	return h != nil && h.endMicros() > now
}

// Release removes an owner's hold and returns true if there was one. Unless fence is 0, it must be the hold's fence.
func (l *Lock) Release(owner []byte, fence int64) bool {
	h := l.Find(owner)
	if h == nil || fence != 0 && h.Fence != fence {
		return false
	}
	l.remove(h)
	return true
}

// Lose removes a holder that did not release the lock. Its delay, if any, begins when the lease ended.
func (l *Lock) Lose(h *Holder, now int64) {
	if h.DelayMicros > 0 {
		from := h.UntilMicros
		if h.Bound() {
			from = now
		}
		l.ClosedMicros = max(l.ClosedMicros, min(min(from, now)+h.DelayMicros, TimeMax))
	}
	l.remove(h)
}

// Settle ends up to max leases that have run out, in the order of their ends, and a delay that is over. It calls lost
// with each holder that loses the lock. It returns whether anything changed.
func (l *Lock) Settle(now int64, max int, lost func(h Holder)) (did bool) {
	for ; max > 0; max-- {
		h := l.first()
		if h == nil || h.endMicros() > now {
			break
		}
		lost(*h)
		l.Lose(h, now)
		did = true
	}
	return l.Open(now) || did
}

// Open ends a delay that is over.
func (l *Lock) Open(now int64) bool {
	if l.ClosedMicros == 0 || l.ClosedMicros > now {
		return false
	}
	l.ClosedMicros = 0
	return true
}

// DueMicros is when the first lease or the delay ends, whichever is first; 0 if neither will.
func (l *Lock) DueMicros() int64 {
	at := int64(never)
	if h := l.first(); h != nil {
		at = h.endMicros()
	}
	if l.ClosedMicros != 0 {
		at = min(at, l.ClosedMicros)
	}
	if at == never {
		return 0
	}
	return at
}

// Free tells whether the lock has no holder and no delay.
func (l *Lock) Free() bool { return l.ClosedMicros == 0 && l.Len() == 0 }

// Gone tells whether the lock is free once all that has run out by now is settled.
func (l *Lock) Gone(now int64) bool {
	gone := l.ClosedMicros <= now
	l.Each(func(h Holder) bool {
		end := h.endMicros()
		gone = gone && end <= now && (h.DelayMicros == 0 || !h.Bound() && end+h.DelayMicros <= now)
		return gone
	})
	return gone
}

// Freed is when the request could be granted, if nobody comes before it and no lease is renewed; 0 if that is unknown,
// because it depends on a connection. fence is that of the holder whose lease ends then, 0 if it is none.
func (l *Lock) Freed(a *Ask) (fence, atMicros int64) {
	atMicros = l.ClosedMicros
	missing := int64(math.MaxInt64) // the whole lock
	switch {
	case a.Behind || l.Mode != a.Mode || a.Mode == Alone:
	case a.Mode == Shared:
		missing = 0 // only a delay can be in the way
	case a.Mode == Permits:
		missing = a.Take - (l.Permits - l.Taken)
	}
	until := func(h Holder) bool {
		fence, atMicros = h.Fence, max(atMicros, h.endMicros())
		missing -= h.Take
		return missing > 0
	}
	switch {
	case missing <= 0:
	case l.large != nil && missing == math.MaxInt64:
		if last, ok := l.large.byEnd.Max(); ok {
			until(*last)
		}
	default:
		l.byEnd(until)
	}
	if atMicros == never {
		atMicros = 0
	}
	return fence, atMicros
}
