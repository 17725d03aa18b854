//go:build toyalgorithm

// This file is TOY, an example that no release contains: if nobody has taken anything for one period, everything comes
// back at once. The file is all that the server has of the algorithm, so a new algorithm can begin as a copy of it.

package limiter

// Toy has the last possible number, to be out of the way of other algorithms.
const Toy Algorithm = algorithmMask

func init() {
	register(Toy, &algorithm{
		word: "TOY", grammar: countPerPeriod, version: 2,
		size: func(Rule, []byte) int { return fixedSize },
		wait: Rule.resetWait, take: Rule.toyTake, room: Rule.fixedRoom, bears: Rule.usedBears, give: Rule.fixedGive,
		during: Rule.logDuring, settle: Rule.fixedSettle, over: Rule.overWhenFull,
		fullAt: Rule.fixedFullAt, carry: Rule.fixedCarry, back: Rule.startBack, check: Rule.fixedCheck,
	})
}

// toyTake stores the time of the last call, where FIXED has the start of its window. If the clock was set back, it
// stays.
func (r Rule) toyTake(state []byte, now, cost int64) []byte {
	last, used := r.fixedLoad(state, now)
	return fixedStore(state, max(last, now), used+cost)
}
