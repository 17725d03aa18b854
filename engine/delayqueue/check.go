package delayqueue

import (
	"encoding/binary"
	"fmt"
)

// Check verifies what must hold between any two calls; tests run it after each
// step.
func (q *Queue) Check() error {
	if err := q.table.Check(); err != nil {
		return err
	}
	n := 0
	for i, t := range q.trees {
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
			case place(i) == waiting && int64(binary.LittleEndian.Uint64(r.Value()[headDue:])) != it.at:
				err = fmt.Errorf("%q waits for another time than it is due", r.Key())
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
	return nil
}
