// This file moves limiters in time, where the clock that they go by is set back: what
// comes back after a length of time still does so then.
package limiter

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/table"
)

// SetBack has what was taken come back as soon as it would have: the clock was set by byMicros,
// which is below 0, and shows now. p is changed in place. The periods of CAL are those of a
// calendar, and so they stay. What was taken in one that is yet to come counts in the one
// that is now, and one that was over is over, or a limiter that was idle would not be.
func SetBack(p []byte, now, byMicros int64) {
	var o opened
	o.open(p)
	for i := 0; i < o.n; i++ {
		o.rules[i].move(p[o.at[i]:o.at[i+1]], now, byMicros)
	}
}

func (r Rule) move(state []byte, now, by int64) {
	switch r.Algorithm {
	case GCRA:
		m := r.loadMoment(state)
		m.micros = max(m.micros+by, 0)
		r.storeMoment(state, m)
	case Log:
		l := loadLog(state)
		if l.newestCost > 0 {
			by = max(by, -l.oldest) // the times between hang on these two
		}
		l.oldest, l.newest = max(l.oldest+by, 0), max(l.newest+by, 0)
		l.store(state)
	case Cal:
		s := r.calLoad(state, now-by) // a period that was over stays so
		if s.start > now {
			s.start, s.end = r.Calendar().period(now)
		}
		s.store(state)
	case Window, Fixed:
		start := state[windowStart:] // which is fixedStart, too
		binary.LittleEndian.PutUint64(start, uint64(max(int64(binary.LittleEndian.Uint64(start))+by, 0)))
	}
}

// SetBack is the package's SetBack for a limiter with grants, which end as much earlier. All are
// moved by the same, in whole milliseconds, so that they stay in their order.
func (n *Named) SetBack(now, byMicros int64) {
	SetBack(n.state, now, byMicros)
	for it := n.table.Iter(); it.Next(); {
		g := loadGrant(it.Record().Value())
		byMicros = max(byMicros, -g.taken)
		if g.endMillis != 0 {
			byMicros = max(byMicros, 1000-g.endMillis*1000)
		}
	}
	byMillis := byMicros / 1000
	var endless []table.Record
	for it := n.table.Iter(); it.Next(); {
		r := it.Record()
		if endOf(r) == 0 {
			endless = append(endless, r)
			continue
		}
		end := r.Value()[grantEnd:]
		putUint48(end, uint64(int64(uint48(end))+byMillis)) // the time when it was taken is kept as a length before it
	}
	for _, r := range endless {
		g := loadGrant(r.Value())
		g.taken += byMillis * 1000
		n.set(r.Key(), r, &g)
	}
	if n.latest != 0 {
		n.latest += byMillis
	}
}
