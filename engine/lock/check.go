package lock

import "fmt"

// Check verifies what must hold between any two calls; tests run it after each step.
func (l *Lock) Check() error {
	n, taken, last := 0, int64(0), int64(0)
	var err error
	l.Each(func(h Holder) bool {
		n++
		if l.Mode == Permits {
			taken += h.Take
		}
		switch {
		case h.Fence <= last:
			err = fmt.Errorf("fence %d comes after %d", h.Fence, last)
		case l.Find(h.Owner) == nil || l.Find(h.Owner).Fence != h.Fence:
			err = fmt.Errorf("%q is not found", h.Owner)
		case l.ByFence(h.Fence) == nil:
			err = fmt.Errorf("fence %d is not found", h.Fence)
		case h.Take < 1 || l.Mode != Permits && h.Take != 1:
			err = fmt.Errorf("%q has %d permits", h.Owner, h.Take)
		}
		last = h.Fence
		return err == nil
	})
	ends, before := 0, int64(0)
	l.byEnd(func(h Holder) bool {
		ends++
		if h.endMicros() < before {
			err = fmt.Errorf("%q ends before another one", h.Owner)
		}
		before = h.endMicros()
		return true
	})
	switch {
	case err != nil:
		return err
	case n != l.Len() || ends != n || l.large != nil && len(l.large.owners) != n:
		return fmt.Errorf("%d holders, %d of whom end, are counted as %d", n, ends, l.Len())
	case taken != l.Taken || taken > l.Permits:
		return fmt.Errorf("%d of %d permits are out, which are counted as %d", taken, l.Permits, l.Taken)
	case l.Mode == Alone && n > 1 || (l.Mode == Permits) != (l.Permits > 0) || n == 0 && l.Mode != Alone:
		return fmt.Errorf("%d holders hold it %v, of %d permits", n, l.Mode, l.Permits)
	case (n > 0) != (l.first() != nil):
		return fmt.Errorf("none ends first")
	}
	return nil
}
