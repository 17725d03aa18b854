package set

// The intset: a sorted array of integers, all as wide as the widest needs.

import (
	"encoding/binary"
	"math"
)

// intset is Redis's format: the width in bytes (2, 4, 8) and the length as uint32 LE, then the integers LE. A wide
// integer widens all; nothing narrows them again. nil is empty.
type intset []byte

const intsetHeader = 8

func (is intset) width() int {
	if is == nil {
		return 2
	}
	return int(is[0])
}

func (is intset) len() int {
	if is == nil {
		return 0
	}
	return int(binary.LittleEndian.Uint32(is[4:]))
}

func widthOf(v int64) int {
	switch {
	case v >= math.MinInt16 && v <= math.MaxInt16:
		return 2
	case v >= math.MinInt32 && v <= math.MaxInt32:
		return 4
	}
	return 8
}

func (is intset) at(i int) int64 {
	switch b := is[intsetHeader:]; is[0] {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	default:
		return int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

func (is intset) put(i int, v int64) {
	switch b := is[intsetHeader:]; is[0] {
	case 2:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	default:
		binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
	}
}

// search returns where v is, or where it belongs.
func (is intset) search(v int64) (i int, found bool) {
	n := is.len()
	lo, hi := 0, n
	for lo < hi {
		if mid := (lo + hi) / 2; is.at(mid) < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < n && is.at(lo) == v
}

func (is intset) contains(v int64) bool {
	_, found := is.search(v)
	return found
}

func (is intset) add(v int64) (intset, bool) {
	i, found := is.search(v)
	if found {
		return is, false
	}
	n, width := is.len(), max(is.width(), widthOf(v))
	if size := intsetHeader + (n+1)*width; is == nil || width > is.width() || size > cap(is) {
		next := intset(append([]byte(nil), make([]byte, size)...))
		next[0] = byte(width)
		for j := range n {
			to := j
			if j >= i {
				to++
			}
			next.put(to, is.at(j))
		}
		is = next
	} else {
		is = is[:size]
		b := is[intsetHeader:]
		copy(b[(i+1)*width:], b[i*width:n*width])
	}
	is.put(i, v)
	binary.LittleEndian.PutUint32(is[4:], uint32(n+1))
	return is, true
}

func (is intset) remove(v int64) (intset, bool) {
	i, found := is.search(v)
	if !found {
		return is, false
	}
	n, width := is.len(), is.width()
	b := is[intsetHeader:]
	copy(b[i*width:], b[(i+1)*width:n*width])
	is = is[:intsetHeader+(n-1)*width]
	binary.LittleEndian.PutUint32(is[4:], uint32(n-1))
	if cap(is) > 64 && len(is) < cap(is)/2 {
		is = append(intset(nil), is...)
	}
	return is, true
}
