package command

// The slots of Redis Cluster, for a server that answers as a cluster of one
// node: it has them all, but as on any cluster the keys of a command must be of
// one slot.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
)

// Slots is how many slots a cluster has.
const Slots = 1 << 14

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

// SlotOf is the slot of a key: that of its {hashtag} if it has one.
func SlotOf(key []byte) int { return slotOfTag(engine.TagOf(key)) }

func slotOfTag(tag []byte) int {
	crc := uint16(0)
	for _, b := range tag {
		crc = crc<<8 ^ crcs[byte(crc>>8)^b]
	}
	return int(crc) & (Slots - 1)
}

// PatternSlot is the slot that all keys are of which match a pattern, -1 if
// they may be of several: then no {hashtag} comes before its first wildcard.
func PatternSlot(pattern []byte) int {
	wild := bytes.IndexAny(pattern, `*?[\`)
	if wild < 0 {
		return SlotOf(pattern)
	}
	if tag := engine.TagOf(pattern[:wild]); len(tag) < wild {
		return slotOfTag(tag)
	}
	return -1
}

// NoSlot is the slot of a command without keys.
const NoSlot = -1
