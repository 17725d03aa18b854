// This file adapts limiters to a clock that was set back: what comes back after some time still comes back after that
// time.

package limiter

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/table"
)

// SetBack adapts a limiter to a clock that was set by byMicros, which is below 0, and now shows now: what was taken
// comes back as soon as it would have. It changes p in place. The periods of CAL are those of the calendar, so they do
// not move. What was taken in a period that is now in the future counts in the current one. A period that was over
// stays over, so that an idle limiter stays idle.
func SetBack(p []byte, now, byMicros int64) {
	var o opened
	o.open(p)
	for i := 0; i < o.n; i++ {
		r := o.rules[i]
		r.row().back(r, p[o.at[i]:o.at[i+1]], now, byMicros)
	}
}

// startBack moves a window whose start is the state's first eight bytes.
func (r Rule) startBack(state []byte, _, by int64) {
	start := int64(binary.LittleEndian.Uint64(state))
	binary.LittleEndian.PutUint64(state, uint64(max(start+by, 0)))
}

// SetBack is the package's SetBack for a limiter with grants, which end earlier by the same time. All move by the same
// number of whole milliseconds, so they stay in order.
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
		putUint48(end, uint64(int64(uint48(end))+byMillis)) // the time when it was taken is stored relative to this
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
