// This file is CONC and TOTAL, which time brings nothing back to. Their state is
// what is held, or was taken for good. What comes back comes from named grants
// (Named) that end, or from who gives it back.
package limiter

const holdSize = 6 // uint48

// never is longer than any wait.
const never int64 = 1 << 62

func loadHold(state []byte) int64 { return int64(uint48(state)) }

func storeHold(state []byte, used int64) { putUint48(state, uint64(used)) }

func (r Rule) holdWait(state []byte, cost int64) int64 {
	if loadHold(state)+cost <= r.Count {
		return 0
	}
	return never
}

func (r Rule) holdRoom(state []byte) (available, reset int64) {
	used := loadHold(state)
	if used == 0 {
		return r.Count, 0
	}
	return r.Count - used, never
}

func (r Rule) holdTake(state []byte, cost int64) { storeHold(state, loadHold(state)+cost) }

func (r Rule) holdGive(state []byte, n int64) {
	used := loadHold(state)
	storeHold(state, used-min(n, used))
}
