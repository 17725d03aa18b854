package tables

// The order in which Lua 5.1 lists a table: its array, then its hash part, node by node. Which node a key is in follows
// from its hash, from the keys that were there before, and from when the hash part grew.

import (
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// node is a place in the hash part. Keys whose hashes collide are chained.
type node struct {
	key  int32 // its number, -1: free
	next int32 // -1: none
}

// entry is a key with what decides on its place.
type entry struct {
	key     lua.LValue
	integer int // what the array might take, else 0
	hash    uint32
	how     hashing
}

type hashing uint8

const (
	masked  hashing = iota // strings, booleans: modulo the size, a power of two
	divided                // all else: modulo an odd number
)

// hashPart is a hash part being filled.
type hashPart struct {
	entries   []entry
	nodes     []node
	free      int // above it no node is free
	arraySize int
	inArray   [32]int // how many integers the array holds of each magnitude
}

// arrange returns the keys that Lua would list behind the first arraySize integers. The keys of values that are nil now
// are among them.
func arrange(t *lua.LTable, order []lua.LValue) (arraySize int, keys []lua.LValue) {
	in := inside(t)
	items, fields := 0, 0
	if m, ok := in.k2i[constructed]; ok {
		items, fields = m>>16, m&0xffff
	}
	arraySize = arrayRoom(in.array, items, fields > 0)
	rest := in.array[arraySize:]
	if len(in.keys) == 0 && len(rest) == 0 {
		return arraySize, order[:0]
	}
	h := hashPart{arraySize: arraySize, entries: make([]entry, 0, len(in.keys))}
	for i, v := range in.array[:arraySize] {
		if v != lua.LNil {
			h.inArray[magnitude(i+1)]++
		}
	}
	for i, v := range rest {
		if v != lua.LNil {
			h.entries = append(h.entries, entryOf(lua.LNumber(arraySize+i+1), len(h.entries)))
		}
	}
	for _, k := range in.keys {
		h.entries = append(h.entries, entryOf(k, len(h.entries)))
	}
	if fields > 0 {
		h.resize(fields)
	}
	for i := range h.entries {
		h.insert(int32(i))
	}
	keys = order[:0]
	if h.arraySize > arraySize { // it has taken integers
		for i := arraySize + 1; i <= h.arraySize; i++ {
			keys = append(keys, lua.LNumber(i))
		}
	}
	for _, n := range h.nodes {
		if n.key >= 0 {
			keys = append(keys, h.entries[n.key].key)
		}
	}
	return arraySize, keys
}

// arrayRoom returns how much of gopher-lua's array would be in Lua's: what a constructor listed, or as much as is more
// than half full.
func arrayRoom(array []lua.LValue, items int, isConstructed bool) int {
	if isConstructed && len(array) > items {
		if !dense(array) {
			return items
		}
	}
	if isConstructed && items == 0 {
		return 0 // {[1] = x}: in the hash part, until that grows
	}
	if !hasGrown(cap(array)) || dense(array) {
		return len(array)
	}
	var count [32]int
	total := 0
	for i, v := range array {
		if v != lua.LNil {
			count[magnitude(i+1)]++
			total++
		}
	}
	size, _ := arraySizeFor(&count, total)
	return min(size, len(array))
}

func dense(array []lua.LValue) bool {
	for _, v := range array {
		if v == lua.LNil {
			return false
		}
	}
	return true
}

// magnitude is the smallest m with i ≤ 2^m.
func magnitude(i int) int { return bits.Len(uint(i - 1)) }

// arraySizeFor returns the largest power of two of which more than half would be in use, and how many that would be.
func arraySizeFor(count *[32]int, total int) (size, used int) {
	sum := 0
	for i := 0; i < len(count) && 1<<i/2 < total; i++ {
		sum += count[i]
		if count[i] > 0 && sum > 1<<i/2 {
			size, used = 1<<i, sum
		}
		if sum == total {
			break
		}
	}
	return size, used
}

// entryOf hashes a key. number stands for the address of what is hashed by its address.
func entryOf(k lua.LValue, number int) entry {
	e := entry{key: k, how: divided, hash: uint32(number)}
	switch k := k.(type) {
	case lua.LString:
		e.hash, e.how = hashString(string(k)), masked
	case lua.LBool:
		e.how, e.hash = masked, 0
		if k {
			e.hash = 1
		}
	case lua.LNumber:
		f := float64(k)
		if f >= 1 && f < 1<<26 && f == math.Trunc(f) {
			e.integer = int(f)
		}
		if f == 0 {
			e.hash, e.how = 0, masked
			break
		}
		b := math.Float64bits(f)
		e.hash = uint32(b) + uint32(b>>32)
	case *lua.LUserData:
		if k.Value == nil {
			e.hash = 0 // cjson.null: the address is 0
		}
	}
	return e
}

// hashString hashes all of a string, as Redis's Lua does. The original skips bytes of long ones.
func hashString(s string) uint32 {
	h := uint32(len(s))
	for i := len(s) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(s[i])
	}
	return h
}

// home is the node in which a key would like to be.
func (h *hashPart) home(key int32) int32 {
	e := &h.entries[key]
	size := uint32(len(h.nodes))
	if e.how == masked {
		return int32(e.hash & (size - 1))
	}
	return int32(e.hash % ((size - 1) | 1))
}

// resize makes an empty hash part with room for n keys.
func (h *hashPart) resize(n int) {
	size := 0
	if n > 0 {
		size = 1 << bits.Len(uint(n-1))
	}
	h.nodes = make([]node, size)
	for i := range h.nodes {
		h.nodes[i] = node{-1, -1}
	}
	h.free = size
}

func (h *hashPart) insert(key int32) {
	if i := h.entries[key].integer; i > 0 && i <= h.arraySize {
		h.inArray[magnitude(i)]++
		return
	}
	if len(h.nodes) == 0 {
		h.grow(key)
		return
	}
	home := h.home(key)
	if h.nodes[home].key < 0 {
		h.nodes[home].key = key
		return
	}
	free := h.takeFree()
	if free < 0 {
		h.grow(key)
		return
	}
	if other := h.home(h.nodes[home].key); other != home {
		// The key there is not at home itself: it goes to the free node.
		for h.nodes[other].next != home {
			other = h.nodes[other].next
		}
		h.nodes[other].next = free
		h.nodes[free] = h.nodes[home]
		h.nodes[home] = node{key, -1}
		return
	}
	h.nodes[free] = node{key, h.nodes[home].next}
	h.nodes[home].next = free
}

// takeFree returns a free node, looking downwards from where it looked last; -1 if there is none.
func (h *hashPart) takeFree() int32 {
	for h.free > 0 {
		h.free--
		if h.nodes[h.free].key < 0 {
			return int32(h.free)
		}
	}
	return -1
}

// grow makes room for one more key, moving integers to the array if that gets more than half full.
func (h *hashPart) grow(key int32) {
	count := h.inArray
	total, integers := 1, 0
	for _, n := range count {
		integers += n
	}
	total += integers
	tally := func(key int32) {
		if i := h.entries[key].integer; i > 0 {
			count[magnitude(i)]++
			integers++
		}
	}
	for _, n := range h.nodes {
		if n.key >= 0 {
			total++
			tally(n.key)
		}
	}
	tally(key)
	size, used := arraySizeFor(&count, integers)
	if size < h.arraySize {
		size = h.arraySize // what a constructor listed stays where it is
		used = 0
		for i, n := range count {
			if 1<<i <= size {
				used += n
			}
		}
	}
	old := h.nodes
	h.arraySize = size
	h.resize(total - used)
	for i := len(old) - 1; i >= 0; i-- {
		if old[i].key >= 0 {
			h.insert(old[i].key)
		}
	}
	h.insert(key)
}
