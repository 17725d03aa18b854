package info

// How much per second, as INFO's instantaneous_* tell. Samples are taken when
// somebody asks, so a server that nobody looks at does nothing for it; the
// rate is then that since the last look but at least of rateMicros.

import "sync"

const rateMicros = 1e6

// sample is what has been counted at a time.
type sample struct{ at, commands, in, out, replIn, replOut int64 }

// rate is per second.
type rate struct{ commands, in, out, replIn, replOut float64 }

type rates struct {
	mu sync.Mutex
	// older is at least rateMicros before last, or the first of all.
	older, last sample
}

func (r *rates) sample(now sample) rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.at-r.last.at >= rateMicros {
		r.older, r.last = r.last, now
	}
	from := r.older
	seconds := float64(now.at-from.at) / 1e6
	if seconds <= 0 {
		return rate{}
	}
	per := func(a, b int64) float64 { return max(0, float64(a-b)/seconds) }
	return rate{per(now.commands, from.commands), per(now.in, from.in), per(now.out, from.out), per(now.replIn, from.replIn), per(now.replOut, from.replOut)}
}
