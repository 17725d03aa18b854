// Package lock, internal to the server, is the structure under a lock's key: who holds it, until
// when, and what that allows others. One type serves as mutex, as lock of readers and writers, and
// as semaphore.
//
// A lock knows no clock: the time comes in with every call, in Unix microseconds. Nor does it know who waits: the line is
// the keyspace's, so that the order of those who wait is one, whatever they want.
//
// A lock that nobody holds is no lock: its key is removed. The only thing that stays is a delay that a lease ended with,
// until that is over.
//
// Nearly all locks have one holder. Up to holdersPacked are kept as bytes (packed.go), which for a mutex take some 30;
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
	Permits             // by those who took some of its permits
)

var modeNames = [...]string{"alone", "shared", "permits"}

// String is the mode's name as LK.INFO shows it.
func (m Mode) String() string { return modeNames[m] }

// Holder is one that holds a lock.
type Holder struct {
	Owner []byte
	// Fence is the number of the grant: every grant has a greater one than those before it.
	Fence int64
	// UntilMicros is when the lease ends, 0 if it is bound to a connection.
	UntilMicros int64
	// DelayMicros is for how long nobody gets the lock if the lease ends without a release.
	DelayMicros int64
	// Session is the connection that it is bound to, or that is told of its loss; 0 for none. It is of this process
	// alone: what comes from elsewhere has none, and what is bound to none has ended.
	Session int64
	// Take is how many permits it has; 1 in other modes.
	Take int64
}

// Bound tells whether the lease is bound to a connection.
func (h *Holder) Bound() bool { return h.UntilMicros == 0 }

const (
	never = math.MaxInt64
	gone  = 1 // when a lease ends that is bound to a connection which is not there
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
	// Permits is how many there are in all, Taken how many are out.
	Permits, Taken int64
	// ClosedMicros is until when nobody gets the lock, 0 for a lock that is open.
	ClosedMicros int64

	few   [holdersPacked + 1]Holder // in order of their fences, while there is no large
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

// What Acquire returns for what is not granted.
var (
	// ErrRefused: others hold it, or are before the caller.
	ErrRefused = errors.New("lock: refused")
	// ErrPermits: permits are out, of another number in all.
	ErrPermits = errors.New("lock: the number of permits differs")
	// ErrOtherwise: the owner holds it already, but otherwise.
	ErrOtherwise = errors.New("lock: held otherwise by this owner")
	// ErrHolders: there are HoldersMax.
	ErrHolders = errors.New("lock: too many holders")
	// ErrFences: there is no greater fence.
	ErrFences = errors.New("lock: no fence is left")
)

// Ask is what somebody asks for.
type Ask struct {
	Owner []byte
	// UntilMicros, DelayMicros, Session and Take are the holder's to be.
	UntilMicros, DelayMicros, Session, Take int64
	Mode                                    Mode
	Permits                                 int64
	// Behind: others wait before the caller, who so gets nothing new.
	Behind bool
}

// Acquire grants what is asked for, or returns why not. An owner who holds the lock so already has its lease renewed and
// keeps its fence; renewed tells. next makes a new fence, 0 if none is left.
func (l *Lock) Acquire(a *Ask, now int64, next func() int64) (fence int64, renewed bool, err error) {
	if h := l.Find(a.Owner); h != nil {
		switch {
		case l.Mode == a.Mode && h.Take == a.Take && l.Permits == a.Permits:
		case l.Mode == Alone && a.Mode == Shared: // a writer goes on as a reader
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

// Touch renews an owner's lease. It returns the holder, nil if it holds nothing by now.
func (l *Lock) Touch(owner []byte, now, untilMicros, session int64) *Holder {
	h := l.Held(owner, now)
	if h != nil {
		l.change(h, untilMicros, h.DelayMicros, session)
	}
	return h
}

// Held is the holder of a name whose lease has not ended by now, nil if there is none.
func (l *Lock) Held(owner []byte, now int64) *Holder {
	if h := l.Find(owner); h != nil && h.endMicros() > now {
		return h
	}
	return nil
}

// Guards tells whether the grant of a fence holds now.
func (l *Lock) Guards(fence, now int64) bool {
	h := l.ByFence(fence)
	return h != nil && h.endMicros() > now
}

// Release takes an owner's hold away, if it has one, and, unless fence is 0, of that fence.
func (l *Lock) Release(owner []byte, fence int64) bool {
	h := l.Find(owner)
	if h == nil || fence != 0 && h.Fence != fence {
		return false
	}
	l.remove(h)
	return true
}

// Lose takes away a hold that its owner did not give back: a delay then begins, when the lease ended.
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

// Settle ends up to max leases that have run out, those that ended first before the others, and a delay that is over. lost
// gets each holder that has lost it. It reports whether anything was done.
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

// DueMicros is when something ends: the first lease, or the delay. 0 if nothing does.
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

// Free tells whether nothing is left of the lock.
func (l *Lock) Free() bool { return l.ClosedMicros == 0 && l.Len() == 0 }

// Gone tells whether nothing is left of the lock but what has run out by now.
func (l *Lock) Gone(now int64) bool {
	gone := l.ClosedMicros <= now
	l.Each(func(h Holder) bool {
		end := h.endMicros()
		gone = gone && end <= now && (h.DelayMicros == 0 || !h.Bound() && end+h.DelayMicros <= now)
		return gone
	})
	return gone
}

// Freed is when what is asked for could be granted, if nobody comes before and no lease is renewed: 0 if that is not
// known, since it depends on a connection. The fence is that of the holder whose lease ends then, 0 if it is no holder's.
func (l *Lock) Freed(a *Ask) (fence, atMicros int64) {
	atMicros = l.ClosedMicros
	missing := int64(math.MaxInt64) // all of it
	switch {
	case a.Behind || l.Mode != a.Mode || a.Mode == Alone:
	case a.Mode == Shared:
		missing = 0 // only the delay keeps it out
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
