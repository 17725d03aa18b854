package lock

// SetBack adapts leases, and the delay after one, to a clock that was set by byMicros, which is below 0: they end as
// soon as they would have. All leases move by the same time, so they stay in order.
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
