package zset

import (
	"encoding/binary"
	"math"
)

// arena has the entries of a large set, each a score (8 bytes), the length of the member (1 or 2) and the member. A ref
// of 4 bytes identifies an entry, which moves only in a compaction. A million entries are some thousand slices without
// pointers, so the garbage collector has nothing to trace, and a member costs no allocation.
//
// The memory is divided into chunks of 16 KiB, of which the first one starts small and grows, and chunks into units of
// 4 bytes. A freed entry goes to the free list of its size, whose links are in the free memory itself. While more than
// two thirds of the arena are free, each removal looks for a chunk of which two thirds are free, moves its entries,
// some hundred at most, and releases it. So a set that shrinks releases its memory without a pause. (With a half
// instead of two thirds, emptying a set by ZPOPMIN took 8 % longer.)
type arena struct {
	chunks [][]byte // by number; nil for a released one
	live   []uint16 // units in use in each chunk
	spare  []uint32 // numbers of released chunks
	hand   int      // the chunk at which the search for one to evacuate continues
	tail   int      // the chunk that new entries are appended to, -1 if none
	free   []ref    // heads of the free lists by size in units; 0 is the end
	units  int      // in use
	holes  int      // units in free lists
	long   [][]byte // members longer than inlineMax; their entries have an index into it
	unused []uint32 // free slots of long
	longs  int      // bytes in long
}

// ref identifies an entry: the number of its chunk, and the unit in it where the entry starts. 0 is no entry.
type ref uint32

const (
	unitBytes  = 4
	chunkBytes = 16 << 10
	chunkUnits = chunkBytes / unitBytes
	chunkShift = 12 // log2(chunkUnits)

	firstUnit = 1 // unit 0 of each chunk is not used, so that no ref is 0

	// inlineMax is the longest member that is stored in a chunk. A longer one has its own allocation, so that little is
	// wasted at the end of a chunk.
	inlineMax = 1023

	victimSteps = 64 // chunks looked at in one search

	// arenaChunksMax limits the members of one set to 2^32 units, 16 GiB (not
	// counting the long ones, of which there can be half a billion).
	arenaChunksMax = 1 << (32 - chunkShift)

	// The byte after the score. Below lenWide it is the length. From lenWide on, its low bits and the next byte are the
	// length. lenLong and lenFree are marks.
	lenWide = 0xC0
	lenLong = 0xFE // the index into long follows, 4 bytes
	lenFree = 0xFF // a free entry: its size in units follows, 2 bytes; next and previous of its list are in place of the score
)

func unitsFor(bytes int) int { return (bytes + unitBytes - 1) / unitBytes }

// unitsOf returns the size of a member's entry.
func unitsOf(memberBytes int) int {
	switch {
	case memberBytes < lenWide:
		return unitsFor(scoreBytes + 1 + memberBytes)
	case memberBytes <= inlineMax:
		return unitsFor(scoreBytes + 2 + memberBytes)
	default:
		return unitsFor(scoreBytes + 1 + 4)
	}
}

func (a *arena) at(r ref) []byte {
	return a.chunks[r>>chunkShift][r%chunkUnits*unitBytes:]
}

func (a *arena) score(r ref) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(a.at(r)))
}

func (a *arena) setScore(r ref, score float64) {
	binary.LittleEndian.PutUint64(a.at(r), math.Float64bits(score))
}

// member returns the member of an entry.
func (a *arena) member(r ref) []byte {
	b := a.at(r)[scoreBytes:]
	switch n := int(b[0]); {
	case n < lenWide:
		return b[1 : 1+n : 1+n]
	case n < lenLong:
		n = (n-lenWide)<<8 | int(b[1])
		return b[2 : 2+n : 2+n]
	default:
		return a.long[binary.LittleEndian.Uint32(b[1:])]
	}
}

// add stores an entry.
func (a *arena) add(member []byte, score float64) ref {
	r := a.alloc(unitsOf(len(member)))
	a.setScore(r, score)
	b := a.at(r)[scoreBytes:]
	switch n := len(member); {
	case n < lenWide:
		b[0] = byte(n)
		copy(b[1:], member)
	case n <= inlineMax:
		b[0], b[1] = byte(lenWide+n>>8), byte(n)
		copy(b[2:], member)
	default:
		b[0] = lenLong
		binary.LittleEndian.PutUint32(b[1:], a.addLong(member))
	}
	return r
}

func (a *arena) addLong(member []byte) uint32 {
	own := append([]byte(nil), member...)
	a.longs += cap(own)
	if n := len(a.unused); n > 0 {
		i := a.unused[n-1]
		a.unused = a.unused[:n-1]
		a.long[i] = own
		return i
	}
	a.long = append(a.long, own)
	return uint32(len(a.long) - 1)
}

// remove frees an entry.
func (a *arena) remove(r ref) {
	units := unitsOf(len(a.member(r)))
	if b := a.at(r)[scoreBytes:]; b[0] == lenLong {
		i := binary.LittleEndian.Uint32(b[1:])
		a.longs -= cap(a.long[i])
		a.long[i] = nil
		a.unused = append(a.unused, i)
	}
	a.units -= units
	a.live[r>>chunkShift] -= uint16(units)
	a.link(r, units)
}

// alloc finds room for an entry of so many units: a hole of exactly that size, or the end of the arena.
func (a *arena) alloc(units int) ref {
	var r ref
	if units < len(a.free) && a.free[units] != 0 {
		r = a.free[units]
		a.unlink(r, units)
	} else {
		r = a.append(units)
	}
	a.units += units
	a.live[r>>chunkShift] += uint16(units)
	return r
}

func (a *arena) append(units int) ref {
	if len(a.chunks) == 0 {
		a.tail = -1
	}
	if a.tail >= 0 {
		c := a.chunks[a.tail]
		if len(c)+units*unitBytes <= chunkBytes {
			r := ref(a.tail<<chunkShift | len(c)/unitBytes)
			a.chunks[a.tail] = extend(c, units*unitBytes)
			return r
		}
	}
	if n := len(a.spare); n > 0 {
		a.tail = int(a.spare[n-1])
		a.spare = a.spare[:n-1]
	} else {
		if len(a.chunks) == arenaChunksMax {
			panic("zset: a sorted set's members exceed 16 GiB")
		}
		a.tail = len(a.chunks)
		a.chunks = append(a.chunks, nil)
		a.live = append(a.live, 0)
	}
	var c []byte
	if a.tail != 0 {
		c = make([]byte, 0, chunkBytes)
	}
	a.chunks[a.tail] = extend(c, (firstUnit+units)*unitBytes)
	return ref(a.tail<<chunkShift | firstUnit)
}

// extend lengthens a chunk; one without room doubles, up to the size of a whole chunk.
func extend(c []byte, n int) []byte {
	if len(c)+n > cap(c) {
		bigger := make([]byte, len(c), min(chunkBytes, max(1024, 2*cap(c), len(c)+n)))
		copy(bigger, c)
		c = bigger
	}
	return c[:len(c)+n]
}

// A free entry is a node of the list of its size.

func (a *arena) link(r ref, units int) {
	for len(a.free) <= units {
		a.free = append(a.free, 0)
	}
	head := a.free[units]
	b := a.at(r)
	binary.LittleEndian.PutUint32(b, uint32(head))
	binary.LittleEndian.PutUint32(b[4:], 0)
	b[8] = lenFree
	binary.LittleEndian.PutUint16(b[9:], uint16(units))
	if head != 0 {
		binary.LittleEndian.PutUint32(a.at(head)[4:], uint32(r))
	}
	a.free[units] = r
	a.holes += units
}

func (a *arena) unlink(r ref, units int) {
	b := a.at(r)
	next, prev := ref(binary.LittleEndian.Uint32(b)), ref(binary.LittleEndian.Uint32(b[4:]))
	if prev == 0 {
		a.free[units] = next
	} else {
		binary.LittleEndian.PutUint32(a.at(prev), uint32(next))
	}
	if next != 0 {
		binary.LittleEndian.PutUint32(a.at(next)[4:], uint32(prev))
	}
	a.holes -= units
}

// walk calls fn for the entries of a chunk, free or not. fn may unlink them.
func (a *arena) walk(chunk int, fn func(r ref, units int, free bool)) {
	c := a.chunks[chunk]
	for unit := firstUnit; unit < len(c)/unitBytes; {
		r := ref(chunk<<chunkShift | unit)
		b := c[unit*unitBytes:]
		free := b[8] == lenFree
		var units int
		if free {
			units = int(binary.LittleEndian.Uint16(b[9:]))
		} else {
			units = unitsOf(len(a.member(r)))
		}
		unit += units
		fn(r, units, free)
	}
}

// sparse reports whether so much of the arena is free that a chunk should be evacuated.
func (a *arena) sparse() bool {
	return a.holes > 2*a.units+chunkUnits
}

// victim returns a chunk that is two thirds free or more, -1 if there is none among the next few. In a sparse arena an
// average chunk is.
func (a *arena) victim() int {
	for range min(victimSteps, len(a.chunks)) {
		i := a.hand
		if a.hand++; a.hand == len(a.chunks) {
			a.hand = 0
		}
		if a.chunks[i] != nil && i != a.tail && a.live[i] <= chunkUnits/3 {
			return i
		}
	}
	return -1
}

// evacuate empties a chunk and calls moved for each entry that it moved.
func (a *arena) evacuate(victim int, moved func(from, to ref)) {
	var entries [chunkUnits / 3]ref // the smallest entry has 3 units
	n := 0
	a.walk(victim, func(r ref, units int, free bool) {
		if free {
			a.unlink(r, units)
			return
		}
		entries[n] = r
		n++
	})
	for _, r := range entries[:n] {
		units := unitsOf(len(a.member(r)))
		to := a.alloc(units)
		copy(a.at(to)[:units*unitBytes], a.at(r))
		a.units -= units
		moved(r, to)
	}
	a.live[victim] = 0
	a.chunks[victim] = nil
	a.spare = append(a.spare, uint32(victim))
}

func (a *arena) memoryUsage() int {
	bytes := 24*cap(a.chunks) + 2*cap(a.live) + 4*cap(a.spare) + 4*cap(a.free) +
		24*cap(a.long) + 4*cap(a.unused) + a.longs
	for _, c := range a.chunks {
		bytes += cap(c)
	}
	return bytes
}
