// This file is CONC, a limit on what is in use at once. Its state (hold.go) is what named grants hold, so only they
// change it.

package limiter

// Conc bounds what named grants (Named) hold at once.
const Conc Algorithm = 5

func init() {
	row := holding()
	row.word, row.needsLease = "CONC", true
	row.over = func(_ Rule, _ []byte, now int64) int64 { return now }
	register(Conc, row)
}
