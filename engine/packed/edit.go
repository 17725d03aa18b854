package packed

// Editing: every change opens or closes one gap in the slice and writes whole elements into it.

import "encoding/binary"

// Item is an element to be written: a string or an integer.
type Item struct {
	b     []byte
	n     int64
	isInt bool
}

// String is an element with the bytes b, which are stored as an integer if they are one in canonical form.
func String(b []byte) Item {
	if n, ok := ParseInt(b); ok {
		return Item{n: n, isInt: true}
	}
	return Item{b: b}
}

// Number is an element that is an integer.
func Number(n int64) Item { return Item{n: n, isInt: true} }

// Size returns how many bytes the element takes in a list.
func (it *Item) Size() int {
	n := it.entryBytes()
	return n + backlenBytes(n)
}

func (it *Item) entryBytes() int {
	if !it.isInt {
		switch n := len(it.b); {
		case n < 64:
			return 1 + n
		case n < 4096:
			return 2 + n
		default:
			return 5 + n
		}
	}
	switch n := it.n; {
	case n >= 0 && n <= 127:
		return 1
	case n >= -4096 && n <= 4095:
		return 2
	case n >= -1<<15 && n < 1<<15:
		return 3
	case n >= -1<<23 && n < 1<<23:
		return 4
	case n >= -1<<31 && n < 1<<31:
		return 5
	default:
		return 9
	}
}

// put writes the element to dst, which has room, and returns its size.
func (it *Item) put(dst []byte) int {
	n := it.entryBytes()
	if it.isInt {
		v := uint64(it.n)
		switch n {
		case 1:
			dst[0] = byte(v)
		case 2:
			dst[0] = 0xC0 | byte(v>>8)&0x1F
			dst[1] = byte(v)
		case 3:
			dst[0] = 0xF1
			binary.LittleEndian.PutUint16(dst[1:], uint16(v))
		case 4:
			dst[0] = 0xF2
			dst[1], dst[2], dst[3] = byte(v), byte(v>>8), byte(v>>16)
		case 5:
			dst[0] = 0xF3
			binary.LittleEndian.PutUint32(dst[1:], uint32(v))
		default:
			dst[0] = 0xF4
			binary.LittleEndian.PutUint64(dst[1:], v)
		}
	} else {
		length := len(it.b)
		switch n - length {
		case 1:
			dst[0] = 0x80 | byte(length)
		case 2:
			dst[0] = 0xE0 | byte(length>>8)
			dst[1] = byte(length)
		default:
			dst[0] = 0xF0
			binary.LittleEndian.PutUint32(dst[1:], uint32(length))
		}
		copy(dst[n-length:], it.b)
	}
	k := backlenBytes(n)
	for i, v := k-1, n; i >= 0; i-- {
		dst[n+i] = byte(v & 0x7F)
		if i > 0 {
			dst[n+i] |= 0x80
		}
		v >>= 7
	}
	return n + k
}

// Append adds elements at the end.
func Append(lp []byte, items ...Item) []byte { return Insert(lp, max(End(lp), headerBytes), items...) }

// Insert adds elements before the one at p; p may be End. The items must not alias lp.
func Insert(lp []byte, p int, items ...Item) []byte {
	size := 0
	for i := range items {
		size += items[i].Size()
	}
	lp = splice(lp, p, 0, size)
	for i := range items {
		p += items[i].put(lp[p:])
	}
	addCount(lp, len(items))
	return lp
}

// Replace puts an element in place of the one at p. The item must not alias lp.
func Replace(lp []byte, p int, item Item) []byte {
	lp = splice(lp, p, Next(lp, p)-p, item.Size())
	item.put(lp[p:])
	return lp
}

// Delete removes n elements from the one at p on, fewer if the list ends before.
func Delete(lp []byte, p, n int) []byte {
	q, removed := p, 0
	for ; removed < n && q < End(lp); removed++ {
		q = Next(lp, q)
	}
	addCount(lp, -removed)
	return splice(lp, p, q-p, 0)
}

// DeleteRange removes the n elements from position p up to, but not including, position q.
func DeleteRange(lp []byte, p, q, n int) []byte {
	addCount(lp, -n)
	return splice(lp, p, q-p, 0)
}

// addCount corrects the number of elements in the header; a number that no longer fits becomes unknown.
func addCount(lp []byte, d int) {
	n := int(binary.LittleEndian.Uint16(lp[4:]))
	if n == countUnknown {
		return
	}
	binary.LittleEndian.PutUint16(lp[4:], uint16(min(n+d, countUnknown)))
}

// splice replaces the size bytes at p by newSize bytes of undefined content.
func splice(lp []byte, p, size, newSize int) []byte {
	if lp == nil {
		lp = alloc(EmptyBytes + newSize)[:EmptyBytes]
		lp[headerBytes] = eof
	}
	old := len(lp)
	total := old + newSize - size
	switch {
	case total > cap(lp), newSize < size && cap(lp) > 64 && total < cap(lp)/2:
		next := alloc(total)
		copy(next, lp[:p])
		copy(next[p+newSize:], lp[p+size:])
		lp = next
	default:
		lp = lp[:max(total, old)]
		copy(lp[p+newSize:total], lp[p+size:old])
		lp = lp[:total]
	}
	binary.LittleEndian.PutUint32(lp, uint32(total))
	return lp
}

// slackFrom is the size from which a list gets room to grow into.
const slackFrom = 1024

// alloc returns n bytes. A short list has the capacity that the allocator gives anyway, because there are millions of
// them, and the allocator's size classes keep appending cheap. A longer one has a quarter more.
func alloc(n int) []byte {
	room := n
	if n >= slackFrom {
		room += n / 4
	}
	return append([]byte(nil), make([]byte, room)...)[:n]
}

// Over returns the list at the beginning of b, with the rest of b as room to grow.
func Over(b []byte) []byte { return b[:binary.LittleEndian.Uint32(b)] }

// Begin returns an empty list at the beginning of b, with the rest of b as room to grow.
func Begin(b []byte) []byte {
	lp := b[:EmptyBytes]
	binary.LittleEndian.PutUint32(lp, EmptyBytes)
	binary.LittleEndian.PutUint16(lp[4:], 0)
	lp[headerBytes] = eof
	return lp
}

// Reserve returns the list with room for size more bytes of elements, so that adding one by one does not
// leave copies behind.
func Reserve(lp []byte, size int) []byte {
	if lp == nil {
		lp = alloc(EmptyBytes + size)[:EmptyBytes]
		lp[headerBytes] = eof
		binary.LittleEndian.PutUint32(lp, EmptyBytes)
		return lp
	}
	if len(lp)+size <= cap(lp) {
		return lp
	}
	next := alloc(len(lp) + size)[:len(lp)]
	copy(next, lp)
	return next
}

// Compact returns the list without much room to grow, for one that will not grow soon.
func Compact(lp []byte) []byte {
	if cap(lp)-len(lp) < len(lp)/8 {
		return lp
	}
	return append([]byte(nil), lp...)
}

// Slice returns a new list of the n elements from position p up to, but not including, position q.
func Slice(lp []byte, p, q, n int) []byte {
	part := splice(nil, headerBytes, 0, q-p)
	copy(part[headerBytes:], lp[p:q])
	addCount(part, n)
	return part
}

// Filter returns a new list of the elements for which keep, called in their order, returns true. lp must not be nil.
func Filter(lp []byte, keep func(p int) bool) []byte {
	part := append(make([]byte, 0, len(lp)), lp[:headerBytes]...)
	n := 0
	for p := First(lp); p < End(lp); {
		next := Next(lp, p)
		if keep(p) {
			part = append(part, lp[p:next]...)
			n++
		}
		p = next
	}
	part = append(part, eof)
	binary.LittleEndian.PutUint32(part, uint32(len(part)))
	binary.LittleEndian.PutUint16(part[4:], uint16(min(n, countUnknown)))
	return Compact(part)
}

// Concat returns the elements of a and then those of b; a may become part of the result.
func Concat(a, b []byte) []byte {
	if b == nil {
		return a
	}
	n, size := Count(b), len(b)-EmptyBytes
	at := max(End(a), headerBytes)
	a = splice(a, at, 0, size)
	copy(a[at:], b[headerBytes:len(b)-1])
	addCount(a, n)
	return a
}

// Clone returns a copy that shares nothing with lp.
func Clone(lp []byte) []byte {
	if lp == nil {
		return nil
	}
	return append([]byte(nil), lp...)
}
