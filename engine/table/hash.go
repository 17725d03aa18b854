package table

// The hash function. Go's maphash would do, but its seed cannot be chosen, and the order in which a large
// hash is listed must repeat in tests that ask for repeatable randomness.

import (
	"encoding/binary"
	"math/bits"
)

// seed keeps a client from choosing keys that fall into one bucket.
var seed uint64 = 0x243F6A8885A308D3

// SetSeed sets the seed of the hash function. It must be called before any table has an element, once, at
// the start of the program, with a random number where clients are not trusted.
func SetSeed(s uint64) { seed = s }

const (
	k0 = 0xA0761D6478BD642F
	k1 = 0xE7037ED1A0B428DB
	k2 = 0x8EBC6AF09C88C6E3
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Hash returns the hash of a key: multiply and fold, 16 bytes at a time, in the manner of wyhash. The secret
// seed enters both factors.
func Hash(b []byte) uint64 {
	h := seed ^ k0
	n := uint64(len(b))
	for len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^k1^seed, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	var x, y uint64
	switch {
	case len(b) >= 8:
		x = binary.LittleEndian.Uint64(b)
		y = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		x = uint64(binary.LittleEndian.Uint32(b))
		y = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		x = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return mix(k2^n, mix(x^k1^seed, y^h))
}
