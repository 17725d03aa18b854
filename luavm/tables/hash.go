package tables

// The hash part of a table, and how both parts grow. Colliding keys are chained within the nodes. A key that is not in
// the node of its hash moves if a key with that hash needs the node. A key whose value becomes nil keeps its node until another
// key takes the node, or the table grows.

import (
	"math"
	"math/bits"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// node is a place in the hash part.
type node struct {
	key, value lua.LValue // nil: none
	hash       uint32     // of the key
	next       int32      // 1 + the number of the next node in the chain, 0: none
}

// at returns a node by its number.
func (in *layout) at(i int) *node {
	return (*node)(unsafe.Add(unsafe.Pointer(in.nodes), uintptr(i)*unsafe.Sizeof(node{})))
}

// makeNodes makes an empty hash part with room for n keys.
func (in *layout) makeNodes(n int) {
	in.nodes, in.size = nil, 0
	if n > 0 {
		in.size = 1 << bits.Len(uint(n-1))
		in.nodes = unsafe.SliceData(make([]node, in.size))
	}
	in.free = in.size
}

// hashedMax is the longest string of which all bytes are hashed. Lua hashes each string once, when it is made. Here a string is
// hashed whenever it is a key, so only some bytes of longer ones are hashed. A walk lists such keys in another order than Lua.
const hashedMax = 4 << 10

// hashString hashes all bytes of a string up to hashedMax, as Redis's Lua does. The original Lua skips bytes of long strings.
func hashString(s string) uint32 {
	h := uint32(len(s))
	step := 1 + len(s)/hashedMax
	for i := len(s) - 1; i >= 0; i -= step {
		h ^= h<<5 + h>>2 + uint32(s[i])
	}
	return h
}

// Hash is the hash of a string, for GetHashed.
func Hash(s string) uint32 { return hashString(s) }

func hashNumber(f float64) uint32 {
	b := math.Float64bits(f)
	return uint32(b) + uint32(b>>32)
}

// hashOf hashes a key. It may hash an address, since Go does not move values.
func hashOf(key lua.LValue) uint32 {
	switch k := key.(type) {
	case lua.LString:
		return hashString(string(k))
	case lua.LNumber:
		return hashNumber(float64(k))
	case lua.LBool:
		if k {
			return 1
		}
		return 0
	case *lua.LUserData:
		if k.Value == nil {
			return 0 // cjson.null: the address is 0
		}
	}
	return uint32(uintptr((*[2]unsafe.Pointer)(unsafe.Pointer(&key))[1]))
}

// home is the number of the node that belongs to the hash of a key.
func (in *layout) home(key lua.LValue, hash uint32) int {
	mask := uint32(in.size - 1)
	switch k := key.(type) {
	case lua.LString, lua.LBool:
		return int(hash & mask)
	case lua.LNumber:
		if k == 0 {
			return 0 // 0 and -0
		}
	}
	return int(hash % (mask | 1))
}

// find returns the address of a key's value, nil if the key has no place.
func (in *layout) find(key lua.LValue) *lua.LValue {
	switch k := key.(type) {
	case lua.LNumber:
		f := float64(k)
		if i := int(f); uint(i-1) < uint(len(in.array)) && float64(i) == f {
			return &in.array[i-1]
		}
		return in.findNumber(f)
	case lua.LString:
		if in.size == 0 {
			return nil
		}
		return in.findString(string(k), hashString(string(k)))
	}
	if n := in.findNode(key); n >= 0 {
		return &in.at(n).value
	}
	return nil
}

// findNode returns the number of the node of a key, -1 if there is none.
func (in *layout) findNode(key lua.LValue) int {
	if in.size == 0 || key == lua.LNil {
		return -1
	}
	hash := hashOf(key)
	for i := in.home(key, hash); ; {
		n := in.at(i)
		if n.key == key {
			return i
		}
		if i = int(n.next) - 1; i < 0 {
			return -1
		}
	}
}

func (in *layout) findString(s string, hash uint32) *lua.LValue {
	n := in.at(int(hash & uint32(in.size-1)))
	for {
		if n.hash == hash {
			if k, ok := n.key.(lua.LString); ok && string(k) == s {
				return &n.value
			}
		}
		if n.next == 0 {
			return nil
		}
		n = in.at(int(n.next) - 1)
	}
}

func (in *layout) findNumber(f float64) *lua.LValue {
	if in.size == 0 {
		return nil
	}
	home := 0
	if f != 0 {
		home = int(hashNumber(f) % (uint32(in.size-1) | 1))
	}
	n := in.at(home)
	for {
		if k, ok := n.key.(lua.LNumber); ok && float64(k) == f {
			return &n.value
		}
		if n.next == 0 {
			return nil
		}
		n = in.at(int(n.next) - 1)
	}
}

// slot returns the address of a key's value. It makes a place if the key has none.
func (in *layout) slot(key lua.LValue) *lua.LValue {
	if s, ok := key.(lua.LString); ok { // so that it is hashed only once
		hash := hashString(string(s))
		if in.size > 0 {
			if v := in.findString(string(s), hash); v != nil {
				return v
			}
		}
		return in.newKey(key, hash)
	}
	if v := in.find(key); v != nil {
		return v
	}
	return in.newKey(key, hashOf(key))
}

// newKey makes a place for a key that has none.
func (in *layout) newKey(key lua.LValue, hash uint32) *lua.LValue {
	if in.size == 0 {
		return in.grow(key, hash)
	}
	home := in.home(key, hash)
	n := in.at(home)
	if n.value != nil {
		free := in.takeFree()
		if free < 0 {
			return in.grow(key, hash)
		}
		if other := in.home(n.key, n.hash); other != home {
			// The key in that node is not at its own home, so it moves to the free node.
			before := in.at(other)
			for int(before.next)-1 != home {
				before = in.at(int(before.next) - 1)
			}
			before.next = int32(free + 1)
			*in.at(free) = *n
			n.next, n.value = 0, nil
		} else {
			next := n.next
			n.next = int32(free + 1)
			n = in.at(free)
			n.next = next
		}
	}
	n.key, n.hash = key, hash
	return &n.value
}

// takeFree returns a free node, searching downwards from the last position; -1 if there is none.
func (in *layout) takeFree() int {
	for in.free > 0 {
		in.free--
		if in.at(in.free).key == nil {
			return in.free
		}
	}
	return -1
}

// magnitude is the smallest m with i ≤ 2^m.
func magnitude(i int) int { return bits.Len(uint(i - 1)) }

// arrayMax is the largest array.
const arrayMax = 1 << 26

// counts has the number of keys that could be in the array, by magnitude.
type counts [27]int

// add counts a key if it could be in the array, and returns 1 for such a key, else 0.
func (c *counts) add(key lua.LValue) int {
	if k, ok := key.(lua.LNumber); ok {
		if i := int(k); float64(i) == float64(k) && i > 0 && i <= arrayMax {
			c[magnitude(i)]++
			return 1
		}
	}
	return 0
}

// grow makes room for one more key: it computes the sizes of both parts anew from the present keys and this one.
func (in *layout) grow(key lua.LValue, hash uint32) *lua.LValue {
	var c counts
	integers := in.countArray(&c)
	total := integers + 1
	for i := range in.size {
		if n := in.at(i); n.value != nil {
			integers += c.add(n.key)
			total++
		}
	}
	integers += c.add(key)
	size, used := arraySizeFor(&c, integers)
	in.resize(size, total-used)
	if _, ok := key.(lua.LNumber); ok {
		return in.slot(key) // its place may be in the array now
	}
	return in.newKey(key, hash)
}

// countArray counts the values in the array, slice by slice between powers of two.
func (in *layout) countArray(c *counts) (total int) {
	from := 0
	for m := 0; from < len(in.array); m++ {
		to, n := min(1<<m, len(in.array)), 0
		for _, v := range in.array[from:to] {
			if v != nil {
				n++
			}
		}
		c[m] += n
		total += n
		from = to
	}
	return total
}

// arraySizeFor returns the largest power of two such that an array of that size would be more than half full, and the
// number of keys in it.
func arraySizeFor(c *counts, total int) (size, used int) {
	sum := 0
	for i := 0; i < len(c) && 1<<i/2 < total; i++ {
		sum += c[i]
		if c[i] > 0 && sum > 1<<i/2 {
			size, used = 1<<i, sum
		}
		if sum == total {
			break
		}
	}
	return size, used
}

// resize gives both parts new sizes. All keys must fit.
func (in *layout) resize(items, fields int) {
	oldArray, old := in.array, *in
	if items > len(oldArray) {
		in.array = make([]lua.LValue, items)
		copy(in.array, oldArray)
	}
	in.makeNodes(fields)
	if items < len(oldArray) {
		in.array = nil
		if items > 0 {
			in.array = append(make([]lua.LValue, 0, items), oldArray[:items]...)
		}
		for i, v := range oldArray[items:] {
			if v != nil {
				k := items + i + 1
				*in.newKey(number(k), hashNumber(float64(k))) = v
			}
		}
	}
	for i := old.size - 1; i >= 0; i-- {
		n := old.at(i)
		if n.value == nil {
			continue
		}
		if _, ok := n.key.(lua.LNumber); ok {
			*in.slot(n.key) = n.value // a call with the number would box it again
			continue
		}
		*in.newKey(n.key, n.hash) = n.value
	}
}
