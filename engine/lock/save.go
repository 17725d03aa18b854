package lock

// This file restores locks from files, payloads and the journal. It does not trust files and payloads.

import (
	"bytes"
	"errors"
)

// ErrCorrupt is returned for data that no lock has.
var ErrCorrupt = errors.New("lock: corrupted lock")

// Limits of a lock's values. Restored data must be within them, and all operations stay within them.
const (
	// TimeMax is the last moment: later times become this one.
	TimeMax = 1 << 60
	// SpanMax is the longest duration, longer than a client can ask for.
	SpanMax = 1 << 52
)

// Restore makes a lock that will have this number of holders.
func Restore(mode Mode, permits, closedMicros int64, holders int) (*Lock, error) {
	if mode > Permits || closedMicros < 0 || closedMicros > TimeMax || holders == 0 && mode != Alone ||
		permits < 0 || permits > PermitsMax || (mode == Permits) != (permits > 0) {
		return nil, ErrCorrupt
	}
	return &Lock{Mode: mode, Permits: permits, ClosedMicros: closedMicros}, nil
}

// RestoreHolder adds a holder, whose fence must be greater than all others. It copies the name.
func (l *Lock) RestoreHolder(h Holder) error {
	switch n := l.Len(); {
	case len(h.Owner) == 0 || len(h.Owner) > OwnerMax || h.Fence <= 0 || h.Fence > FenceMax,
		!h.timely() || h.Session != 0,
		l.Mode == Alone && n > 0, n >= HoldersMax, l.Find(h.Owner) != nil,
		h.Take < 1 || l.Mode != Permits && h.Take != 1 || l.Mode == Permits && h.Take > l.Permits-l.Taken,
		h.Fence <= l.LastFence():
		return ErrCorrupt
	}
	h.Owner = bytes.Clone(h.Owner)
	l.add(h)
	if l.large == nil && l.n > holdersPacked {
		*l = *l.Large()
	}
	return nil
}

// timely tells whether a holder's times are within the bounds.
func (h *Holder) timely() bool {
	return h.UntilMicros >= 0 && h.UntilMicros <= TimeMax && h.DelayMicros >= 0 && h.DelayMicros <= SpanMax
}

// LastFence is the greatest fence of a holder, 0 if there is none.
func (l *Lock) LastFence() int64 {
	if l.large != nil {
		if h, ok := l.large.byFence.Max(); ok {
			return h.Fence
		}
		return 0
	}
	if l.n > 0 {
		return l.few[l.n-1].Fence
	}
	return 0
}

// Put makes an owner hold the lock, as the journal says. It returns false if no lock can be like that. Holders that are
// in its way must be removed before, which the journal does.
func (l *Lock) Put(h Holder, mode Mode, permits int64) bool {
	if x := l.Find(h.Owner); x != nil && x.Fence == h.Fence {
		if !h.timely() || l.Permits != permits || x.Take != h.Take || l.Mode != mode && (l.Mode != Alone || mode != Shared) {
			return false
		}
		l.Mode = mode
		l.change(x, h.UntilMicros, h.DelayMicros, h.Session)
		return true
	}
	if l.Len() > 0 && (l.Mode != mode || l.Permits != permits) {
		return false
	}
	was := *l
	l.Mode, l.Permits = mode, permits
	if l.RestoreHolder(h) != nil {
		*l = was
		return false
	}
	return true
}

// LoseSession removes all holders that are bound to a connection, which has ended. It calls lost with each of them, and
// returns whether there were any.
func (l *Lock) LoseSession(session, now int64, lost func(h Holder)) (did bool) {
	for _, h := range l.boundHolders(func(s int64) bool { return s == session }) {
		lost(h)
		l.Lose(l.Find(h.Owner), now)
		did = true
	}
	return did
}

// Orphan ends the leases that are bound to connections that no longer exist, by setting their sessions to 0. there says
// which connections exist. It returns whether it changed any lease.
func (l *Lock) Orphan(there func(session int64) bool) (did bool) {
	for _, h := range l.boundHolders(func(s int64) bool { return s != 0 && !there(s) }) {
		l.change(l.Find(h.Owner), 0, h.DelayMicros, 0)
		did = true
	}
	return did
}

func (l *Lock) boundHolders(of func(session int64) bool) (found []Holder) {
	collect := func(h Holder) {
		if h.Bound() && of(h.Session) {
			found = append(found, h)
		}
	}
	if l.large == nil {
		l.Each(func(h Holder) bool {
			collect(h)
			return true
		})
		return found
	}
	l.large.byEnd.Reverse(func(h *Holder) bool { // bound leases end last
		collect(*h)
		return h.Bound()
	})
	return found
}
