package delayqueue

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/limitkv/limitkv/engine/table"
)

// Check verifies what must hold between any two calls; tests run it after each
// step.
func (q *Queue) Check() error {
	if err := q.table.Check(); err != nil {
		return err
	}
	n, late := 0, 0
	trees := append(q.trees[:], q.done, q.behind)
	if q.rank != nil {
		if err := q.checkRanks(); err != nil {
			return err
		}
		trees = append(trees, q.rank.byTime)
	}
	for i, t := range trees {
		if t == nil {
			continue
		}
		if i > int(behind) {
			i = int(waiting)
		}
		last := item{at: -1 << 62}
		var err error
		t.Scan(func(it item) bool {
			r := it.record
			switch {
			case itemOf(r) != it:
				err = fmt.Errorf("%q is in tree %d at %d, its record says %d", r.Key(), i, it.at, itemOf(r).at)
			case placeOf(r) != place(i):
				err = fmt.Errorf("%q is in tree %d, its record says %d", r.Key(), i, placeOf(r))
			case q.table.Get(r.Key()) != r:
				err = fmt.Errorf("%q in tree %d is not the table's record", r.Key(), i)
			case !last.record.None() && !before(last, it):
				err = fmt.Errorf("tree %d is out of order at %q", i, r.Key())
			case seqOf(r) > q.seq:
				err = fmt.Errorf("%q has number %d of %d", r.Key(), seqOf(r), q.seq)
			case place(i) == behind && !q.precedes(idOf(r)):
				err = fmt.Errorf("%q is behind nothing", r.Key())
			case (place(i) == waiting || place(i) == behind) && int64(binary.LittleEndian.Uint64(r.Value()[headDue:])) != it.at:
				err = fmt.Errorf("%q waits for another time than it is due", r.Key())
			}
			if hasExtra(r) {
				if at, ok := lateOf(r); ok {
					late++
					if got, ok := q.late.Get(item{at, r}); !ok || got.record != r {
						err = fmt.Errorf("%q expires at %d, which is not noted", r.Key(), at)
					}
				}
			}
			last = it
			n++
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if n != q.table.Len() {
		return fmt.Errorf("%d entries in trees, %d in the table", n, q.table.Len())
	}
	if q.late != nil && q.late.Len() != late {
		return fmt.Errorf("%d entries expire, %d are noted", late, q.late.Len())
	}
	return nil
}

// checkRanks verifies the groups.
func (q *Queue) checkRanks() error {
	k := q.rank
	type counts struct{ waiting, leased int }
	found := map[string]counts{}
	note := func(r table.Record, waits bool) {
		x := extraOf(r)
		c := found[string(x.Group)]
		if waits {
			c.waiting++
		} else if ranked(r) && len(x.Group) > 0 {
			c.leased++
		}
		found[string(x.Group)] = c
	}
	var err error
	k.byTime.Scan(func(it item) bool {
		note(it.record, true)
		x := extraOf(it.record)
		g := q.groupOf(&x)
		if _, ok := k.byGroup.Get(rankItemOf(g, &x, it.record)); !ok {
			err = fmt.Errorf("%q is not among its group", it.record.Key())
		}
		return err == nil
	})
	q.trees[leased].Scan(func(it item) bool { note(it.record, false); return true })
	if k.byGroup.Len() != k.byTime.Len() || k.byTime.Len() == 0 && len(k.groups) == 0 && q.template == nil && q.rules == 0 {
		return fmt.Errorf("%d entries by group, %d by time", k.byGroup.Len(), k.byTime.Len())
	}
	later, ready, full, idle := 0, 0, 0, 0
	for name, g := range k.groups {
		if c := found[name]; err == nil && (c.waiting != g.waiting || c.leased != g.leased || g.name != name) {
			err = fmt.Errorf("group %q has %d and %d, found %+v", name, g.waiting, g.leased, c)
		}
	}
	for _, g := range append(slices.Collect(maps.Values(k.groups)), k.plain) {
		_, next := q.head(g, -1<<62)
		switch g.state {
		case groupLater:
			later++
			if err == nil && g.at > next && g.bucket == nil {
				err = fmt.Errorf("group %q may be ready at %d, not %d", g.name, next, g.at)
			}
		case groupReady:
			ready++
		case groupFull, groupHeld:
			if full += 1; err == nil && next == never {
				err = fmt.Errorf("group %q waits and has nothing", g.name)
			}
		case groupIdle:
			idle++
		default:
			if err == nil && next < never {
				err = fmt.Errorf("group %q stands nowhere", g.name)
			}
		}
	}
	others := k.full.Len() + k.held.Len()
	for _, freed := range k.freed {
		others += freed.Len()
	}
	spare := k.idle.Len()
	for _, tree := range k.spare {
		spare += tree.Len()
	}
	if err == nil && (full != others || idle != spare) {
		err = fmt.Errorf("%d and %d groups are full or idle where %d and %d are", others, spare, full, idle)
	}
	if err == nil && (later != k.later.Len() || ready != k.ready.Len()) {
		err = fmt.Errorf("%d and %d groups stand where %d and %d do", k.later.Len(), k.ready.Len(), later, ready)
	}
	return err
}
