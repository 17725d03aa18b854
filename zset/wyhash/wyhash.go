// Package wyhash, internal to the server, is a hash in the manner of wyhash, for members of sets and fields of hashes.
// Go's maphash would do, but its seed cannot be chosen, and tests with repeatable randomness need the same order in
// which a large set is listed.
package wyhash

import (
	"encoding/binary"
	"math/bits"
)

// seed keeps a client from choosing members that collide.
var seed uint64 = 0x243F6A8885A308D3

// Seed sets the seed of all servers of a process. Call it once, before anything is hashed. If clients are not trusted,
// use a random number.
func Seed(n uint64) { seed = n }

const (
	k0 = 0xA0761D6478BD642F
	k1 = 0xE7037ED1A0B428DB
	k2 = 0x8EBC6AF09C88C6E3
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Sum is the hash of b: multiply and fold, 16 bytes at a time. The seed enters both factors.
func Sum(b []byte) uint64 {
	k, h := k1^seed, k0^seed
	n := uint64(len(b))
	for len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^k, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	var x, y uint64
	switch {
	case len(b) >= 8: // the two words may overlap
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		x = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return mix(mix(x^k, y^h), k2^n)
}
