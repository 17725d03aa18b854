package zset

import "testing"

// FuzzSet reads operations from bytes and compares with the sorted slice.
func FuzzSet(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03a\x05\x06\x07b"), uint8(2))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, packedMax uint8) {
		h := newHarness(t, Limits{int(packedMax), 40, nil}, packedMax%2 == 1, 1)
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		member := func() string {
			n := next() % 60
			n = min(n, len(data))
			m := string(data[:n])
			data = data[n:]
			return m
		}
		for len(data) > 0 && h.steps < 400 {
			switch op := next(); op % 8 {
			case 0, 1, 2:
				h.add(member(), float64(int8(next())), 0)
			case 3:
				h.add(member(), float64(int8(next())), Flags(next()%32))
			case 4:
				h.remove(member())
			case 5:
				h.lookup(member())
				h.scoreRange(ScoreBound{float64(int8(next())), op > 99}, ScoreBound{float64(int8(next())), op > 199})
			case 6:
				h.removeRange(next(), next())
			case 7:
				h.pop(next()%5, op > 99)
			}
			h.compare()
		}
	})
}
