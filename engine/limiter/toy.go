//go:build toyalgorithm

// This file is TOY, an example that no release has: all that was taken comes back at once, when nobody has taken anything
// for a period. It is all that the server has of the algorithm, and the next one can begin as its copy.

package limiter

// Toy has the last number there is, so that it is in nobody's way.
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

// toyTake notes when it was, where FIXED has the beginning of its window. A clock that was put back stands still.
func (r Rule) toyTake(state []byte, now, cost int64) []byte {
	last, used := r.fixedLoad(state, now)
	return fixedStore(state, max(last, now), used+cost)
}
