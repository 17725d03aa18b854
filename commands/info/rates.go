package info

// INFO's rates per second, instantaneous_*. A sample is taken only when a client asks, so the rates cost nothing otherwise. A
// rate is the one since the previous sample, but over at least rateMicros.

import "sync"

const rateMicros = 1e6

// sample is the values of the counters at a time.
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
