package engine

// Serving waiters: under the locks of the command, the timer or the deadline that made their keys ready, and before
// anybody else can take what is there.

import (
	"bytes"
	"slices"
)

// ServeReady serves the lines of the keys that this command made ready. The outermost command calls it before it
// releases its locks.
func (v *View) ServeReady() {
	if len(v.ready) != 0 {
		v.serveReady()
	}
}

func (v *View) serveReady() {
	now, held, before := v.Now, v.Held, v.changes
	v.Now = v.KS.Clock.Now() // what they wait for may have expired while the command ran
	defer func() {
		// These changes are counted here: where a deadline made the key ready, no command counts them.
		if n := v.changes - before; n > 0 {
			v.KS.Dirty.Add(n)
			v.changes, v.told = before, v.told-n
		}
		v.Now = now
		v.letGo(held)
	}()
	for len(v.ready) > 0 {
		k := v.ready[0]
		v.ready = v.ready[1:]
		v.serveLine(k)
	}
	v.ready = v.ready[:0:0]
}

func (v *View) serveLine(k waitKey) {
	key := []byte(k.key)
	_, s := v.locate(key)
	l := s.waits[k]
	if l == nil {
		return
	}
	db := v.DB
	v.DB = k.db
	defer func() { v.DB = db }()
	var x lineWalk
	// A waiter that gets nothing holds up those behind it that wait for a value of the same kind, but not those that
	// wait for another kind, which the key might become.
	var held [kindCount]bool
	for n := l.begin(&x); n != nil && (l.noKey > 0 || l.other(&held)); n = x.step() {
		if held[n.w.Kind] && !n.w.NoKey {
			continue
		}
		if n.w.Order == OrderLines {
			v.serveBefore(n.w, key)
		}
		result, at := v.serveOne(n, key)
		x.note(at)
		switch result {
		case ServedHold:
			held[n.w.Kind] = true
		case ServedDone:
			l.remove(n)
		case ServedSame:
			if l.names[n.w.Name] > 1 {
				v.serveSame(l, n, key)
			}
			l.remove(n)
		}
	}
	switch l.walk = x.outer; {
	case l.walk != nil:
		l.walk.note(x.again)
	case l.n == 0:
		v.KS.endLine(s, k)
		v.KS.setAlarm(s, k, l, 0)
	default:
		v.KS.setAlarm(s, k, l, x.again)
	}
}

// serveSame serves the other places of a name that stands in a line several times and was served at one of them.
func (v *View) serveSame(l *waitList, served *place, key []byte) {
	var x lineWalk
	for n := l.begin(&x); n != nil; n = x.step() {
		if n != served && n.w.Name == served.w.Name && n.w.Kind == served.w.Kind {
			if result, _ := v.serveOne(n, key); result.Ends() {
				l.remove(n)
			}
		}
	}
	l.walk = x.outer
	l.walk.note(x.again)
}

// serveBefore serves the lines of those keys of a waiter that come before one in its order, if they are ready or
// their alarm is due. All lines have their waiters in one order, so among waiters for each other's keys the first is
// served first, and each line is begun once. A line that is being served is not begun again here: if it becomes ready
// again, it has its turn later.
func (v *View) serveBefore(w *Waiter, key []byte) {
	for _, before := range w.Keys {
		if bytes.Equal(before, key) || w.Gone() {
			return
		}
		held, k := v.Held, waitKey{v.DB, string(before)}
		if v.Reach(before) { // if it is ready, its lock is held
			_, s := v.locate(before)
			l, i := s.waits[k], slices.Index(v.ready, k)
			switch {
			case l == nil || l.walk != nil:
			case i >= 0:
				v.ready = slices.Delete(v.ready, i, i+1)
				v.serveLine(k)
			case l.alarm != nil && l.alarmAt <= v.Now: // its alarm is due but may not have rung yet
				v.serveLine(k)
			}
		}
		v.letGo(held)
	}
}

func (v *View) serveOne(n *place, key []byte) (Served, int64) {
	w := n.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return ServedDone, 0
	}
	held := v.Held
	for _, also := range w.Also {
		if !v.Reach(also) {
			v.letGo(held)
			for _, also := range w.Also {
				n.list.also.AddKey(also)
			}
			return ServedHold, v.Now // ring waits for their locks
		}
	}
	if w.Order == OrderKeys {
		for _, k := range w.Keys {
			v.Reach(k)
		}
	}
	result, again := w.Who.Serve(v, key)
	v.Commit()
	if result == ServedMove {
		v.moveOn(w, again)
		again = 0
	}
	if result.Ends() {
		w.end()
		if len(w.Keys) > 1 && !v.leaveOthers(w, n) {
			w.KS.Sched.Go(w.Unlist) // some of the other lines are in shards that are not held
		}
	}
	v.letGo(held)
	return result, again
}

// leaveOthers removes a waiter that was served at one of its places from its other lines, as far as their locks are
// held: a later waiter must not find one there that waits no more. It reports whether it removed it from all of them.
func (v *View) leaveOthers(w *Waiter, served *place) (all bool) {
	all = true
	for i, key := range w.Keys {
		n := &w.places[i]
		switch {
		case n == served: // the walk through that line removes it
		case !v.Held.Covers(key):
			all = false
		default:
			_, s := v.locate(key)
			if v.KS.unlist(s, waitKey{w.DB, string(key)}, n) {
				v.markReady(s, key)
			}
		}
	}
	return all
}

// Needs notes that serving the line of a key needs the lock of another key, which is busy. It returns when to serve
// the line again: at once, since that waits for the locks (ring).
func (v *View) Needs(key, other []byte) (againMicros int64) {
	_, s := v.locate(key)
	if l := s.waits[waitKey{v.DB, string(key)}]; l != nil {
		l.also.AddKey(other)
	}
	return v.Now
}

// Reach takes the lock of another key, if that is possible at once. Locks are taken in ascending order, and out of
// that order only without waiting. While a line is served, the code that serves it releases the lock again. A command
// calls Ctx.Reach, which notes the lock for its release.
func (v *View) Reach(key []byte) bool {
	if v.Held.Covers(key) {
		return true
	}
	_, sh := locate(key)
	s := &v.KS.shards[sh]
	if !v.KS.tryEnter(s) {
		return false
	}
	if s.holder != nil {
		s.mu.Unlock()
		return false
	}
	v.Held.mask |= 1 << sh
	return true
}

// ServeLine serves the line of another key, whose lock is held. It is for a waiter that represents that key in the
// line that is being served.
func (v *View) ServeLine(key []byte) { v.serveLine(waitKey{v.DB, string(key)}) }

// Move says that a waiter for one key, which is being served, goes to the end of the line of another key, one of its
// Also keys. Serve then returns ServedMove, and the time that it returns for another try is for that other key.
func (w *Waiter) Move(key []byte, weight int64) { w.next, w.nextWeight = key, weight }

// moveOn puts a waiter at the end of the line that it chose (Move). The locks of both keys are held.
func (v *View) moveOn(w *Waiter, againMicros int64) {
	w.place[0].list.remove(&w.place[0])
	w.Keys, w.place[0].weight = [][]byte{w.next}, w.nextWeight
	_, s := v.locate(w.next)
	l, k := s.line(w.DB, w.next)
	l.push(&w.place[0])
	if l.head == &w.place[0] && againMicros != 0 {
		v.KS.setAlarm(s, k, l, againMicros)
	}
}

// letGo releases the locks that were taken beyond the set held, except those of keys whose lines are still to be
// served: nobody may get in before their waiters.
func (v *View) letGo(held LockSet) {
	if v.Held == held {
		return
	}
	for _, k := range v.ready {
		held.AddKey([]byte(k.key))
	}
	held.mask &= v.Held.mask
	v.KS.Unlock(LockSet{v.Held.mask &^ held.mask})
	v.Held = held
}

// Ready marks a key whose waiters are worth serving.
func (v *View) Ready(key []byte) {
	_, s := v.locate(key)
	v.markReady(s, key)
}

func (v *View) markReady(s *shard, key []byte) {
	if len(s.waits) == 0 {
		return
	}
	k := waitKey{v.DB, string(key)}
	if s.waits[k] == nil {
		return
	}
	for _, r := range v.ready {
		if r == k {
			return
		}
	}
	v.ready = append(v.ready, k)
}
