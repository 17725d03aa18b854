// This file is TOTAL: so much in all. Its state (hold.go) is what was taken, for good or by named grants that are open.

package limiter

// Total bounds what is taken in all. Time brings nothing back.
const Total Algorithm = 6

func init() {
	row := holding()
	row.word = "TOTAL"
	row.over = func(Rule, []byte, int64) int64 { return never }
	register(Total, row)
}
