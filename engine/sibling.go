package engine

// Siblings: further keyspaces in one server, which share only the clock, the scheduler and the settings. A server has
// one keyspace; in tests it has one more for each namespace.

import "slices"

// Sibling makes an empty keyspace with as many databases and the same settings as ks. Its deadlines are served until
// it is retired.
func (ks *Keyspace) Sibling() *Keyspace {
	n := newKeyspace(ks.Clock, ks.dbs)
	n.Sched, n.Events, n.Touched, n.Forward, n.Clone = ks.Sched, ks.Events, ks.Touched, ks.Forward, ks.Clone
	n.LineLeft = ks.LineLeft
	n.Causes, n.Strict = ks.Causes, ks.Strict
	n.LockLost, n.Connected = ks.LockLost, ks.Connected
	ks.Sched.change(func(all []*Keyspace) []*Keyspace {
		n.EventMask.Store(ks.EventMask.Load())
		n.Tracking.Store(ks.Tracking.Load())
		n.LFU.Store(ks.LFU.Load())
		n.LFURule.set(&ks.LFURule)
		n.expiryOff.Store(ks.expiryOff.Load() & expiryPaused)
		return append(all, n)
	})
	return n
}

// Retire ends what Sibling began: no deadline in the keyspace is served any more.
func (ks *Keyspace) Retire() {
	ks.Sched.change(func(all []*Keyspace) []*Keyspace {
		return slices.DeleteFunc(all, func(x *Keyspace) bool { return x == ks })
	})
}

// Siblings are ks and its siblings.
func (ks *Keyspace) Siblings() []*Keyspace { return slices.Clone(ks.Sched.keyspaces()) }

// Each calls fn with ks and all its siblings, to change a setting. No sibling is added or retired meanwhile.
func (ks *Keyspace) Each(fn func(ks *Keyspace)) {
	ks.Sched.change(func(all []*Keyspace) []*Keyspace {
		for _, x := range all {
			fn(x)
		}
		return all
	})
}

// change replaces the list of keyspaces by what edit returns for a copy of it.
func (s *Scheduler) change(edit func(all []*Keyspace) []*Keyspace) {
	s.changing.Lock()
	defer s.changing.Unlock()
	all := edit(slices.Clone(s.keyspaces()))
	s.all.Store(&all)
}

// keyspaces are those whose deadlines are served.
func (s *Scheduler) keyspaces() []*Keyspace { return *s.all.Load() }
