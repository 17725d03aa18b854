// This file is CONC: so much at once. Its state (hold.go) is just what named grants hold, so it changes with them only.

package limiter

// Conc bounds what is held at once by named grants (Named).
const Conc Algorithm = 5

func init() {
	row := holding()
	row.word, row.needsLease = "CONC", true
	row.over = func(_ Rule, _ []byte, now int64) int64 { return now }
	register(Conc, row)
}
