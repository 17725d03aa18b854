package persistence

// What lasts for a length of time where the clock is behind the files.

import "time"

// cameBack has what lasts for a length of time go on from the time that the files end with, where that is ahead of the clock.
func (f *Files) cameBack() {
	ks, last := f.s.Keyspace, f.s.Loading.Last()
	if ahead := last - ks.Clock.Now(); ahead > aheadMin {
		f.s.Logf('w', "The files end %v after the time that the system's clock shows: it went back, or was ahead. "+
			"Leases and limiters go on from there.", time.Duration(ahead)*time.Microsecond)
	}
	ks.CameBack(last)
}

// aheadMin is by how much, in microseconds, files are ahead of the clock where it is logged: some transactions are logged in
// another order than that of their times.
const aheadMin = 100_000
