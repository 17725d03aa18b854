package hyperloglog

// The sparse form: the registers as runs, while few are set.
//
//	00llllll           l+1 registers (1 … 64) are zero
//	01llllll llllllll  l+1 registers (1 … 16384) are zero
//	1vvvvvll           l+1 registers (1 … 4) are v+1 (1 … 32)

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

const (
	zerosMax       = 64
	valueMax       = 32
	valueLengthMax = 4
)

// run is one of the codes above.
type run struct {
	size  int // bytes of the code
	n     int // registers
	value byte
}

// runAt decodes the code at p. If its second byte is missing, it is 0, like the byte after a string in Redis.
func runAt(data []byte, p int) run {
	switch c := data[p]; {
	case c >= 0x80:
		return run{1, int(c&3) + 1, c>>2&0x1F + 1}
	case c < 0x40:
		return run{1, int(c) + 1, 0}
	default:
		n := int(c&0x3F) << 8
		if p+1 < len(data) {
			n |= int(data[p+1])
		}
		return run{2, n + 1, 0}
	}
}

// runs calls fn with the runs of registers. It returns ErrCorrupt unless each register occurs once.
func runs(data []byte, fn func(first, n int, value byte)) error {
	at := 0
	for p := 0; p < len(data); {
		r := runAt(data, p)
		if at+r.n > registers {
			return ErrCorrupt
		}
		fn(at, r.n, r.value)
		at += r.n
		p += r.size
	}
	if at != registers {
		return ErrCorrupt
	}
	return nil
}

func appendZeros(b []byte, n int) []byte {
	switch {
	case n == 0:
		return b
	case n <= zerosMax:
		return append(b, byte(n-1))
	}
	return append(b, 0x40|byte((n-1)>>8), byte(n-1))
}

func appendValue(b []byte, value byte, n int) []byte {
	if n == 0 {
		return b
	}
	return append(b, 0x80|(value-1)<<2|byte(n-1))
}

// spot is a position among the runs of a sparse counter: a code, and its first register.
type spot struct{ p, first int }

// skipRuns moves a spot towards a register, many codes at a time. If possible, the spot stays at least one code before
// the register's code, because setSparse needs that code, too.
func skipRuns(data []byte, index int, from *spot) {
	for p, first := from.p, from.first; len(data)-p >= 8; {
		n, size := eightRuns(binary.LittleEndian.Uint64(data[p:])), 8
		if n == 0 {
			r := runAt(data, p)
			n, size = r.n, r.size
		}
		if index < first+n {
			return
		}
		*from = spot{p, first}
		p, first = p+size, first+n
	}
}

// eightRuns is how many registers eight codes contain, or 0 if one of the codes has two bytes.
func eightRuns(codes uint64) int {
	const each = 0x0101010101010101
	if codes&^(codes>>1)&(0x40*each) != 0 {
		return 0
	}
	values := codes >> 7 & each
	n := codes & (0x3f * each &^ (values * 0x3c)) // of each code one less than its registers
	n = n&0x00ff00ff00ff00ff + n>>8&0x00ff00ff00ff00ff
	return 8 + int(n*0x0001000100010001>>48)
}

// setSparse raises a register of a sparse counter. The counter becomes dense if the value does not fit, or if the
// string would get longer than sparseMax. The search for the register begins at the spot from, and setSparse moves from
// to where the search for the next one begins. So a caller that raises many registers from the lowest to the highest,
// and changes nothing else meanwhile, does not begin at the first one each time.
func setSparse(b []byte, index int, rank byte, sparseMax int, from *spot) (next []byte, changed bool, err error) {
	if rank > valueMax {
		return promote(b, index, rank)
	}
	data := b[headerBytes:]
	if from.p == 0 { // a caller that continues from another register is already near
		skipRuns(data, index, from)
	}
	// The run that has the register, and the run before it.
	p, before, first := from.p, from.p, from.first
	beforeFirst := first
	for p < len(data) {
		n, size := int(data[p])+1, 1
		if c := data[p]; c >= 0x80 {
			n = int(c&3) + 1
		} else if c >= 0x40 {
			r := runAt(data, p)
			n, size = r.n, r.size
		}
		if index < first+n {
			break
		}
		*from = spot{before, beforeFirst} // changes begin after it, at the run before the register's
		before, beforeFirst = p, first
		first += n
		p += size
	}
	if p >= len(data) {
		return b, false, ErrCorrupt
	}
	r := runAt(data, p)
	if r.value >= rank {
		return b, false, nil
	}
	// The run is cut into what is before the register, the register, and what is after it.
	var buffer [5]byte
	cut := buffer[:0]
	left, right := index-first, first+r.n-1-index
	if r.value == 0 {
		cut = appendZeros(appendValue(appendZeros(cut, left), rank, 1), right)
	} else {
		cut = appendValue(appendValue(appendValue(cut, r.value, left), rank, 1), r.value, right)
	}
	if len(cut) > r.size && len(b)+len(cut)-r.size > sparseMax {
		return promote(b, index, rank)
	}
	b = slices.Replace(b, headerBytes+p, min(headerBytes+p+r.size, len(b)), cut...)
	return mergeRuns(b, headerBytes+before), true, nil
}

// mergeRuns joins adjacent runs of the same value, among the next few runs from p on.
func mergeRuns(b []byte, p int) []byte {
	for scan := 5; scan > 0 && p < len(b); scan-- {
		r := runAt(b, p)
		if r.value == 0 {
			p += r.size
			continue
		}
		if p+1 < len(b) {
			if after := runAt(b, p+1); after.value == r.value && r.n+after.n <= valueLengthMax {
				b[p+1] = appendValue(nil, r.value, r.n+after.n)[0]
				b = slices.Delete(b, p, p+1)
				continue
			}
		}
		p++
	}
	return b
}

// promote makes a sparse counter dense and raises a register, which must be lower.
func promote(b []byte, index int, rank byte) ([]byte, bool, error) {
	d, err := ToDense(b)
	if err != nil {
		return b, false, err
	}
	return d, raise(d[headerBytes:], index, rank), nil
}

// Decode returns the runs of a sparse counter as PFDEBUG DECODE writes them: z: or Z: with the number of zero
// registers, v: with a value and the number of registers that have it.
func Decode(b []byte) string {
	var out []string
	data := b[headerBytes:]
	for p := 0; p < len(data); {
		r := runAt(data, p)
		switch {
		case r.value > 0:
			out = append(out, fmt.Sprintf("v:%d,%d", r.value, r.n))
		case r.size == 1:
			out = append(out, fmt.Sprintf("z:%d", r.n))
		default:
			out = append(out, fmt.Sprintf("Z:%d", r.n))
		}
		p += r.size
	}
	return strings.Join(out, " ")
}
