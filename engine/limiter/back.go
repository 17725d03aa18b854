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
		r := o.rules[i]
		r.row().back(r, p[o.at[i]:o.at[i+1]], now, byMicros)
	}
}

// startBack moves a window that begins with a state's first eight bytes.
func (r Rule) startBack(state []byte, _, by int64) {
	start := int64(binary.LittleEndian.Uint64(state))
	binary.LittleEndian.PutUint64(state, uint64(max(start+by, 0)))
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
