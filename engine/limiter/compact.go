// This file is the compact form of a limiter: New makes it, and most limiters in memory have it. Counts take two bytes
// each, and periods of whole seconds are stored in seconds. That saves 10 or 11 bytes, one size class of the allocator:
// 48 bytes instead of 64 for a key of 14 bytes with one GCRA rule.
//
//	1 byte   as in form.go, with compactFlag
//	2 bytes  calls granted
//	2 bytes  calls refused
//	         the rest as in form.go, except the rules' periods
//
// When a count no longer fits in two bytes, the limiter becomes wide for good. Files, effects and DUMP have the wide
// form.

package limiter

import "encoding/binary"

const (
	compactFlag    = 0x40
	compactRefused = 3
	compactHead    = 5
	compactMax     = 1<<16 - 1
)

func compact(p []byte) bool { return p[0]&compactFlag != 0 }

// headOf is where the rules begin.
func headOf(p []byte) int {
	if compact(p) {
		return compactHead
	}
	return headSize
}

// AppendWide appends the limiter in its wide form.
func AppendWide(dst, p []byte) []byte {
	if !compact(p) {
		return append(dst, p...)
	}
	granted, refused := Totals(p)
	var head [headSize]byte
	head[0] = p[0] &^ compactFlag
	putUint48(head[headGranted:], uint64(granted))
	putUint48(head[headRefused:], uint64(refused))
	return appendForm(append(dst, head[:]...), p, false)
}

// Compact is the limiter in its compact form: other bytes, or p if it is compact already or its counts are too large.
func Compact(p []byte) []byte {
	granted, refused := Totals(p)
	if compact(p) || granted > compactMax || refused > compactMax {
		return p
	}
	var head [compactHead]byte
	head[0] = p[0] | compactFlag
	binary.LittleEndian.PutUint16(head[headGranted:], uint16(granted))
	binary.LittleEndian.PutUint16(head[compactRefused:], uint16(refused))
	return appendForm(append(make([]byte, 0, len(p)), head[:]...), p, true)
}

// appendForm appends what follows the head of p, with the rules written anew.
func appendForm(dst, p []byte, seconds bool) []byte {
	at := headOf(p)
	for range int(p[0] & rulesMask) {
		var r Rule
		r, at = decodeRule(p, at)
		dst = r.append(dst, seconds)
	}
	return append(dst, p[at:]...)
}

// countCompact adds one to a count of a compact limiter. If the count does not fit, it returns a wide limiter.
func countCompact(p []byte, limited bool) []byte {
	at := headGranted
	if limited {
		at = compactRefused
	}
	total := binary.LittleEndian.Uint16(p[at:])
	if total == compactMax {
		p = AppendWide(nil, p)
		countWide(p, limited)
		return p
	}
	binary.LittleEndian.PutUint16(p[at:], total+1)
	return p
}
