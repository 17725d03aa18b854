package zset

// The hash of members. maphash would do, but its seed cannot be chosen, and what
// ZSCAN gives must be repeatable in tests.

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

var (
	hashSeed uint64 = 0x2d358dccaa6c78a5
	seedOnce sync.Once
)

// SetSeed seeds the hash of members. Call it before there is any set, with a
// random number where clients are not trusted: they could choose members that
// collide. Only the first call counts, as sets of all servers in a process
// share the seed.
func SetSeed(seed uint64) { seedOnce.Do(func() { hashSeed = seed }) }

// hashMember mixes 16 bytes a step by a full multiplication, as wyhash does. The
// seed enters both factors.
func hashMember(b []byte) uint64 {
	const k0, k1, k2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3
	k, h := k1^hashSeed, k0^hashSeed
	n := uint64(len(b))
	for len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^k, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	var lo, hi uint64
	switch {
	case len(b) >= 8: // the two words may overlap
		lo, hi = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		lo, hi = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		lo = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return mix(mix(lo^k, hi^h), k2^n)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
