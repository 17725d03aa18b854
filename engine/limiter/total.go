// This file is TOTAL, a limit on what is taken in all. Its state (hold.go) is what was taken for good and what open
// named grants hold.

package limiter

// Total bounds what is taken in all. Time brings nothing back.
const Total Algorithm = 6

func init() {
	row := holding()
	row.word = "TOTAL"
	row.over = func(Rule, []byte, int64) int64 { return never }
	register(Total, row)
}
