// Package hashslot, internal to the server, is the slots of Redis Cluster, for a server that
// answers as a cluster of one node: it has them all, but as on any cluster the keys of a command
// must be of one slot.
package hashslot

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
)

// Count is how many slots a cluster has.
const Count = 1 << 14

// crcs is the table of CRC-16/XMODEM: polynomial 0x1021, from 0, not reflected.
var crcs = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		t[i] = crc
	}
	return t
}()

// Of is the slot of a key: that of its {hashtag} if it has one.
func Of(key []byte) int { return slotOfTag(engine.TagOf(key)) }

func slotOfTag(tag []byte) int {
	crc := uint16(0)
	for _, b := range tag {
		crc = crc<<8 ^ crcs[byte(crc>>8)^b]
	}
	return int(crc) & (Count - 1)
}

// OfPattern is the slot that all keys are of which match a pattern, -1 if
// they may be of several: then no {hashtag} comes before its first wildcard.
func OfPattern(pattern []byte) int {
	wild := bytes.IndexAny(pattern, `*?[\`)
	if wild < 0 {
		return Of(pattern)
	}
	if tag := engine.TagOf(pattern[:wild]); len(tag) < wild {
		return slotOfTag(tag)
	}
	return -1
}

// None is the slot of a command without keys.
const None = -1
