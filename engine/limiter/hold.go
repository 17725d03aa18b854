// This file is what CONC and TOTAL share: time brings nothing back. The state is what grants hold, and what was taken
// for good. It comes back when a named grant (Named) ends, or when a client gives it back.

package limiter

import "fmt"

const holdSize = 6 // uint48

// never is longer than any wait.
const never int64 = 1 << 62

// holding is a row without the fields in which CONC and TOTAL differ.
func holding() *algorithm {
	return &algorithm{
		grammar: countAlone, version: 2, untimed: true,
		size: func(Rule, []byte) int { return holdSize },
		wait: Rule.resetWait, take: Rule.holdTake, room: Rule.holdRoom, bears: Rule.usedBears, give: Rule.holdGive,
		during: func(Rule, []byte, int64, int64, spent) int64 { return never },
		settle: givesAnywhere(Rule.holdGive),
		fullAt: Rule.holdFullAt,
		carry: func(_ Rule, state []byte, _ int64, _ Rule, oldState []byte) []byte {
			return append(state[:0], oldState...)
		},
		back:  func(Rule, []byte, int64, int64) {},
		check: Rule.holdCheck,
	}
}

func loadHold(state []byte) int64 { return int64(uint48(state)) }

func storeHold(state []byte, used int64) []byte {
	putUint48(state, uint64(used))
	return state
}

func (r Rule) holdRoom(state []byte, _ int64) (available, reset int64) {
	used := loadHold(state)
	if used == 0 {
		return r.Count, 0
	}
	return r.Count - used, never
}

func (r Rule) holdTake(state []byte, _, cost int64) []byte {
	return storeHold(state, loadHold(state)+cost)
}

func (r Rule) holdGive(state []byte, _, n int64) {
	used := loadHold(state)
	storeHold(state, used-min(n, used))
}

func (r Rule) holdFullAt(state []byte) int64 {
	if loadHold(state) == 0 {
		return 0
	}
	return never
}

func (r Rule) holdCheck(state []byte) error {
	if used := loadHold(state); used > UsedMax {
		return fmt.Errorf("%d used", used)
	}
	return nil
}
