package lock

import (
	"fmt"
	"testing"
)

// Leases, and the delay after one, end in order and on time, whatever the form of the lock.
func TestSetBack(t *testing.T) {
	for _, holders := range []int{1, holdersPacked, holdersPacked + 5} {
		for _, by := range []int64{-1000, -3_600_000_000, -TimeMax} {
			l := &Lock{ClosedMicros: 1 << 50}
			for i := range holders {
				h := Holder{Owner: fmt.Append(nil, i), Fence: int64(i + 1), Take: 1, UntilMicros: 1<<50 + int64(i*7%5)}
				mode := Shared
				if holders == 1 {
					mode = Alone
				}
				if !l.Put(h, mode, 0) {
					t.Fatal("not put")
				}
				if i == 3 {
					l.change(l.Find(h.Owner), 0, 0, 9)
				}
			}
			due := l.DueMicros()
			l.SetBack(by)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			again(t, l)
			if by != -TimeMax && l.DueMicros() != due+by {
				t.Errorf("%d holders, by %d: due at %d, was %d", holders, by, l.DueMicros(), due)
			}
		}
	}
}
