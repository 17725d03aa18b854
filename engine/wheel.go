package engine

// The timing wheel: one per shard, with a tick of a millisecond. To add, remove or move a deadline costs the same
// whatever the number of keys. The wheel knows when it must be turned next, so expiry is exact to the tick and an
// idle server sleeps. Rejected: sampling, as in Redis, which is late by design; a heap, which touches log n entries
// at each change.
//
// A node is 16 bytes and refers to its entry; the entry knows its node. A deadline that moves later leaves the node
// where it is: when the node comes up too early it is put in again. So a limiter or a lock whose deadline moves at
// every request costs nothing here.

import (
	"math/bits"
	"unsafe"
)

const (
	wheelBits0    = 8 // 256 slots of 1 ms
	wheelBits     = 6 // 64 slots for each further level
	wheelLevels   = 6
	wheelSlots0   = 1 << wheelBits0
	wheelSlots    = 1 << wheelBits
	wheelHeads    = wheelSlots0 + (wheelLevels-1)*wheelSlots
	microsPerTick = 1000
	wheelSpanMax  = int64(1) << (wheelBits0 + (wheelLevels-1)*wheelBits) // ticks, about 8.7 years
)

type wheelNode struct {
	ref        unsafe.Pointer // *header; nil for a head and a free node
	next, prev uint32
}

type wheel struct {
	nodes []wheelNode // the first wheelHeads are the slots' list heads
	free  uint32      // head of the list of free nodes, through next
	tick  int64       // Unix milliseconds up to which everything has fired
	// occupied has a bit for each slot that is not empty.
	occupied0 [wheelSlots0 / 64]uint64
	occupied  [wheelLevels]uint64
	count     int
	// fired is the head of the slot where due last found a node, at the time firedAt.
	fired   uint32
	firedAt int64
	// volatileKeys counts, by database, the keys that have a deadline.
	volatileKeys []int
	// promisedKeys counts those of them that are never evicted.
	promisedKeys []int
	// volatileHashes counts, by database, the hashes that have fields with a deadline.
	volatileHashes []int
	sampled        int // the node that Tally looked at last
}

func (w *wheel) init(nowMillis int64) {
	w.nodes = make([]wheelNode, wheelHeads, wheelHeads+64)
	for i := range w.nodes {
		w.nodes[i].next, w.nodes[i].prev = uint32(i), uint32(i)
	}
	w.tick = nowMillis
}

// reset forgets all nodes and counts.
func (w *wheel) reset() {
	clear(w.volatileKeys)
	clear(w.promisedKeys)
	clear(w.volatileHashes)
	*w = wheel{volatileKeys: w.volatileKeys, promisedKeys: w.promisedKeys, volatileHashes: w.volatileHashes}
}

// countKey counts a key with a deadline if by is 1, and uncounts it if by is -1.
func (w *wheel) countKey(db int, e Entry, by int) {
	w.volatileKeys[db] += by
	if e.promises() {
		w.promisedKeys[db] += by
	}
}

// slotFor is the list head for a deadline, which must be later than the tick.
func (w *wheel) slotFor(at int64) uint32 {
	// The distance is counted from the next tick, so that one of a whole span never names the slot that is being
	// spread.
	delta := at - w.tick - 1
	if delta < wheelSlots0 {
		return uint32(at & (wheelSlots0 - 1))
	}
	if delta >= wheelSpanMax {
		delta = wheelSpanMax - 1
		at = w.tick + 1 + delta
	}
	level := (bits.Len64(uint64(delta)) - wheelBits0 - 1) / wheelBits
	shift := wheelBits0 + level*wheelBits
	return uint32(wheelSlots0 + level*wheelSlots + int(at>>shift)&(wheelSlots-1))
}

func (w *wheel) link(n, head uint32) {
	h := &w.nodes[head]
	last := h.prev
	w.nodes[n].next, w.nodes[n].prev = head, last
	w.nodes[last].next = n
	w.nodes[head].prev = n
	w.mark(head)
}

func (w *wheel) mark(head uint32) {
	if head < wheelSlots0 {
		w.occupied0[head>>6] |= 1 << (head & 63)
		return
	}
	head -= wheelSlots0
	w.occupied[head>>wheelBits] |= 1 << (head & (wheelSlots - 1))
}

func (w *wheel) unmark(head uint32) {
	if head < wheelSlots0 {
		w.occupied0[head>>6] &^= 1 << (head & 63)
		return
	}
	head -= wheelSlots0
	w.occupied[head>>wheelBits] &^= 1 << (head & (wheelSlots - 1))
}

func (w *wheel) unlink(n uint32) {
	next, prev := w.nodes[n].next, w.nodes[n].prev
	w.nodes[next].prev = prev
	w.nodes[prev].next = next
	if next == prev && next < wheelHeads {
		w.unmark(next)
	}
}

// add puts a reference in for a deadline and returns its node.
func (w *wheel) add(ref unsafe.Pointer, atMillis, nowMillis int64) uint32 {
	if w.nodes == nil {
		w.init(nowMillis)
	}
	if w.count == 0 {
		w.tick = nowMillis // an empty wheel need not be turned
	}
	n := w.free
	if n != 0 {
		w.free = w.nodes[n].next
	} else {
		n = uint32(len(w.nodes))
		w.nodes = append(w.nodes, wheelNode{})
	}
	w.nodes[n].ref = ref
	w.count++
	w.link(n, w.slotFor(max(atMillis, w.tick+1)))
	return n
}

// remove takes a node out.
func (w *wheel) remove(n uint32) {
	w.unlink(n)
	w.nodes[n] = wheelNode{next: w.free}
	w.free = n
	w.count--
	if w.count == 0 && len(w.nodes) > wheelHeads+4096 {
		w.nodes, w.free = nil, 0
		w.occupied0, w.occupied = [wheelSlots0 / 64]uint64{}, [wheelLevels]uint64{}
	}
}

// move gives a node another deadline.
func (w *wheel) move(n uint32, atMillis int64) {
	w.unlink(n)
	w.link(n, w.slotFor(max(atMillis, w.tick+1)))
}

// rewind makes the wheel continue from an earlier time than it has been turned to. The next turn reads the nodes'
// deadlines from their entries.
func (w *wheel) rewind(nowMillis int64) {
	if w.count == 0 || w.tick <= nowMillis {
		return
	}
	w.tick = nowMillis
	for n := wheelHeads; n < len(w.nodes); n++ {
		if w.nodes[n].ref != nil {
			w.move(uint32(n), nowMillis+1)
		}
	}
}

// next is when the wheel must be turned: at a deadline, or when a slot of a higher level must be spread over lower
// ones.
func (w *wheel) next() int64 {
	if w.count == 0 {
		return never
	}
	best := never
	// Level 0: the first occupied slot after the tick, within one turn.
	for i, from := int64(0), w.tick+1; i < wheelSlots0; {
		pos := (from + i) & (wheelSlots0 - 1)
		word := w.occupied0[pos>>6] >> (pos & 63)
		if word != 0 {
			i += int64(bits.TrailingZeros64(word))
			if i < wheelSlots0 {
				best = from + i
			}
			break
		}
		i += 64 - pos&63
	}
	for level := 0; level < wheelLevels-1; level++ {
		word := w.occupied[level]
		if word == 0 {
			continue
		}
		shift := wheelBits0 + level*wheelBits
		cur := w.tick >> shift
		// The slots of a level hold spans that begin after the current one.
		rot := bits.RotateLeft64(word, -int((cur+1)&(wheelSlots-1)))
		at := (cur + 1 + int64(bits.TrailingZeros64(rot))) << shift
		best = min(best, at)
	}
	return best
}

// due turns the wheel towards now, and returns a node whose slot has come, 0 if there is none. The caller removes the
// node, or moves it to where it belongs. The next call finds the next node in the same slot, without a search through
// all slots.
func (w *wheel) due(nowMillis int64) (node uint32) {
	if at := w.tick + 1; w.count > 0 && w.firedAt == at && at <= nowMillis {
		if n := w.nodes[w.fired].next; n != w.fired {
			return n
		}
	}
	for w.count > 0 {
		at := w.next()
		if at > nowMillis {
			break
		}
		w.tick = at - 1
		// Spread the slots of higher levels that begin at this tick.
		for level := wheelLevels - 2; level >= -1; level-- {
			head := uint32(at & (wheelSlots0 - 1))
			if level >= 0 {
				shift := wheelBits0 + level*wheelBits
				if at&(int64(1)<<shift-1) != 0 {
					continue
				}
				head = uint32(wheelSlots0 + level*wheelSlots + int(at>>shift)&(wheelSlots-1))
			}
			if n := w.nodes[head].next; n != head {
				w.fired, w.firedAt = head, at
				return n
			}
		}
		w.tick = at
	}
	w.tick = max(w.tick, nowMillis)
	return 0
}
