package luavm

// math.random. Redis replaces Lua's generator so that numbers are the same everywhere: it uses the linear
// congruential generator of drand48. The server has one generator, which continues from script to script, so a script's
// randomseed also affects later scripts.

import "sync/atomic"

// Random is the generator. It may be used by several VMs at once.
type Random struct{ state atomic.Uint64 }

const (
	lcgFactor = 0x5deece66d
	lcgAdd    = 0xb
	lcgMask   = 1<<48 - 1
	lcgLow    = 0x330e // the low 16 bits of a fresh state
)

// NewRandom returns a generator in the state of a server that has just started.
func NewRandom() *Random {
	r := &Random{}
	r.state.Store(0x1234abcd<<16 | lcgLow)
	return r
}

// Seed restarts the sequence.
func (r *Random) Seed(seed int32) { r.state.Store(uint64(uint32(seed))<<16 | lcgLow) }

// next returns the next 31 bits.
func (r *Random) next() int32 {
	for {
		old := r.state.Load()
		x := (old*lcgFactor + lcgAdd) & lcgMask
		if r.state.CompareAndSwap(old, x) {
			return int32(x >> 17)
		}
	}
}
