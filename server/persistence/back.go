package persistence

// Leases and limiters when the clock is behind the files.

import "time"

// cameBack continues leases and limiters from the time that the files end with, if that is ahead of the clock.
func (f *Files) cameBack() {
	ks, last := f.s.Keyspace, f.s.Loading.Last()
	if ahead := last - ks.Clock.Now(); ahead > aheadMin {
		f.s.Logf('w', "The files end %v after the time that the system's clock shows: it went back, or was ahead. "+
			"Leases and limiters go on from there.", time.Duration(ahead)*time.Microsecond)
	}
	ks.CameBack(last)
}

// aheadMin is how many microseconds the files must be ahead of the clock for a line in the log. Some transactions are logged
// in another order than that of their times.
const aheadMin = 100_000
