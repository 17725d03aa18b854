// Package hashslot, internal to the server, is the slots of Redis Cluster, for a server that acts as a cluster of one node.
// The node has all slots, but as on any cluster the keys of a command must be in one slot.
package hashslot

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
)

// Count is the number of slots.
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

// Of returns the slot of a key, or of its {hashtag} if it has one.
func Of(key []byte) int { return slotOfTag(engine.TagOf(key)) }

func slotOfTag(tag []byte) int {
	crc := uint16(0)
	for _, b := range tag {
		crc = crc<<8 ^ crcs[byte(crc>>8)^b]
	}
	return int(crc) & (Count - 1)
}

// OfPattern returns the slot of all keys that match a pattern. It is -1 if they may be in several, as the pattern has no
// {hashtag} before its first wildcard.
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
