package lock

// SetBack has leases, and the delay after one, end as soon as they would have: the clock was set by byMicros, which is below 0.
// All leases are moved by the same, so that they stay in their order.
func (l *Lock) SetBack(byMicros int64) {
	if l.ClosedMicros != 0 {
		l.ClosedMicros = max(l.ClosedMicros+byMicros, 1)
	}
	l.Each(func(h Holder) bool {
		if !h.Bound() {
			byMicros = max(byMicros, gone+1-h.UntilMicros)
		}
		return true
	})
	move := func(h *Holder) {
		if !h.Bound() {
			h.UntilMicros += byMicros
		}
	}
	if l.large != nil {
		l.large.byFence.Scan(func(h *Holder) bool {
			move(h)
			return true
		})
		return
	}
	for i := range l.n {
		move(&l.few[i])
	}
}
