package lock

// The holders of a lock: a short list, or indices if there are many.
//
// Callers work on their stack with a lock that is stored as bytes. Go leaves it there only if no pointer into it
// escapes. So the list is an array, callbacks get copies, and a large lock finds its holders by itself.

// holdersPacked is the most holders of a lock that is stored as bytes. Each call scans them all.
const holdersPacked = 8

// Len is the number of holders.
func (l *Lock) Len() int {
	if l.large != nil {
		return l.large.byFence.Len()
	}
	return l.n
}

// Each calls fn with all holders in order of their fences, until it returns false. fn must not change the lock.
func (l *Lock) Each(fn func(h Holder) bool) {
	if l.large != nil {
		l.large.byFence.Scan(func(h *Holder) bool { return fn(*h) })
		return
	}
	for i := range l.n {
		if !fn(l.few[i]) {
			return
		}
	}
}

// Find is the holder with a name, nil if there is none.
func (l *Lock) Find(owner []byte) *Holder {
	if l.large != nil {
		return l.large.owners[string(owner)]
	}
	for i := range l.n {
		if string(l.few[i].Owner) == string(owner) {
			return &l.few[i]
		}
	}
	return nil
}

// ByFence is the holder with a fence, nil if there is none.
func (l *Lock) ByFence(fence int64) *Holder {
	if l.large != nil {
		h, _ := l.large.byFence.Get(&Holder{Fence: fence})
		return h
	}
	for i := range l.n {
		if l.few[i].Fence == fence {
			return &l.few[i]
		}
	}
	return nil
}

// first is the holder whose lease ends first, nil if there is none.
func (l *Lock) first() (first *Holder) {
	if l.large != nil {
		first, _ = l.large.byEnd.Min()
		return first
	}
	for i := range l.n {
		if h := &l.few[i]; first == nil || endsBefore(h, first) {
			first = h
		}
	}
	return first
}

// endsBefore orders holders by the ends of their leases.
func endsBefore(a, b *Holder) bool {
	if x, y := a.endMicros(), b.endMicros(); x != y {
		return x < y
	}
	return a.Fence < b.Fence
}

// byEnd calls fn with the holders in the order in which their leases end, until it returns false.
func (l *Lock) byEnd(fn func(h Holder) bool) {
	if l.large != nil {
		l.large.byEnd.Scan(func(h *Holder) bool { return fn(*h) })
		return
	}
	var before *Holder
	for range l.n {
		var next *Holder
		for i := range l.n {
			h := &l.few[i]
			if (before == nil || endsBefore(before, h)) && (next == nil || endsBefore(h, next)) {
				next = h
			}
		}
		if !fn(*next) {
			return
		}
		before = next
	}
}

// add adds a holder, whose fence must be greater than all others.
func (l *Lock) add(h Holder) {
	if l.Mode == Permits {
		l.Taken += h.Take
	}
	if l.large != nil {
		l.large.add(h)
		return
	}
	l.few[l.n] = h
	l.n++
}

func (l *Lock) remove(h *Holder) {
	if l.Mode == Permits {
		l.Taken -= h.Take
	}
	if l.large != nil {
		l.large.remove(h.Owner)
	} else {
		for i := range l.n {
			if &l.few[i] == h {
				copy(l.few[i:], l.few[i+1:l.n])
				l.n--
				break
			}
		}
	}
	if l.Len() == 0 {
		l.Mode, l.Permits = Alone, 0
	}
}

// change gives a holder another lease.
func (l *Lock) change(h *Holder, untilMicros, delayMicros, session int64) {
	if l.large != nil {
		l.large.change(h.Owner, untilMicros, delayMicros, session)
		return
	}
	h.UntilMicros, h.DelayMicros, h.Session = untilMicros, delayMicros, session
}

// Bound tells whether a lease is bound to a connection.
func (l *Lock) Bound() bool {
	if l.large != nil {
		return l.large.bound()
	}
	for i := range l.n {
		if l.few[i].Bound() {
			return true
		}
	}
	return false
}
