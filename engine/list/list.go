// Package list, internal to the server, is Redis's list: a listpack while it is short, a quicklist
// (a sequence of listpacks, nodes) when it is long.
//
// The nodes fill, split and merge exactly as Redis's do. That is more rules than a list needs. But whether a list is
// one node decides when it becomes a listpack again, which OBJECT ENCODING shows, and DUMP writes the nodes. Redis
// links its nodes; here they are side by side in a ring. So the ends are reached at once, an index by adding up the
// counts of nodes, and the garbage collector sees one pointer for 8 KB of elements. LZF compression of inner nodes
// (list-compress-depth) is not implemented: clients would see no difference.
//
// Byte arguments are copied and must not alias the list. Results may alias it until the next write.
package list

import (
	"math"
	"unsafe"

	"github.com/limitkv/limitkv/engine/packed"
)

// Limits are the maximum sizes of a node, and of a list that is one listpack.
type Limits struct {
	// NodeSize is list-max-listpack-size: a number of elements, or -1 … -5 for 4 … 64 KB.
	NodeSize int
	// Large, if not 0, is the size in bytes from which on an element gets its own node; otherwise NodeSize decides.
	Large int
}

// DefaultLimits are Redis's: nodes of 8 KB.
var DefaultLimits = Limits{NodeSize: -2}

// safeBytes bounds a node that is limited by its number of elements.
const safeBytes = 8192

// node returns the limits of a node in bytes and elements.
func (l Limits) node() (size, count int) {
	if l.NodeSize >= 0 {
		return math.MaxInt, max(l.NodeSize, 1)
	}
	return 4096 << (min(-l.NodeSize, 5) - 1), math.MaxInt
}

// exceeded reports whether a node of this size is too large.
func (l Limits) exceeded(size, count int) bool {
	maxSize, maxCount := l.node()
	if maxCount == math.MaxInt {
		return size > maxSize
	}
	return size > safeBytes || count > maxCount
}

// large reports whether an element of n bytes gets a node of its own.
func (l Limits) large(n int) bool {
	if l.Large != 0 {
		return n >= l.Large
	}
	if l.NodeSize >= 0 {
		return n > safeBytes
	}
	size, _ := l.node()
	return n > size
}

// List is a sequence of byte strings. The zero value is an empty list, a listpack.
type List struct {
	lp []byte
	q  *quicklist // nil while the list is a listpack
}

// Of returns a list of these values, in the form that it has in Redis if all of them are known (SORT … STORE, RESTORE).
func Of(values [][]byte, lim Limits) List {
	l := OfNodes(values, lim)
	l.shorten(lim, 1)
	return l
}

// OfNodes returns a list of these values that stays a quicklist, however short, until it is shortened. Redis loads a
// ziplist like this.
func OfNodes(values [][]byte, lim Limits) List {
	l := List{q: &quicklist{lim: lim}}
	for _, v := range values {
		l.q.push(v, false)
	}
	return l
}

// Len returns the number of elements.
func (l *List) Len() int {
	if l.q == nil {
		return packed.Count(l.lp)
	}
	return l.q.count
}

// Encoding is OBJECT ENCODING's answer: listpack or quicklist.
func (l *List) Encoding() string {
	if l.q == nil {
		return "listpack"
	}
	return "quicklist"
}

// MemoryUsage returns the bytes that the list takes.
func (l *List) MemoryUsage() int {
	n := int(unsafe.Sizeof(*l)) + cap(l.lp)
	if l.q != nil {
		n += int(unsafe.Sizeof(*l.q)) + len(l.q.nodes.ring)*int(unsafe.Sizeof(node{}))
		for i := range l.q.nodes.n {
			n += cap(l.q.nodes.at(i).data)
		}
	}
	return n
}

// estimateNodes is how many nodes at either end MemoryEstimate looks at.
const estimateNodes = 4

// MemoryEstimate is MemoryUsage in constant time. It looks at the nodes at the ends and one in the middle, and assumes
// that the others are as large on average.
func (l *List) MemoryEstimate() int {
	if l.q == nil || l.q.nodes.n <= 2*estimateNodes {
		return l.MemoryUsage()
	}
	ns := &l.q.nodes
	ends, within := 0, cap(ns.at(ns.n/2).data)
	for i := range estimateNodes {
		ends += cap(ns.at(i).data) + cap(ns.at(ns.n-1-i).data)
	}
	within += cap(ns.at(estimateNodes-1).data) + cap(ns.at(ns.n-estimateNodes).data)
	return int(unsafe.Sizeof(*l)) + int(unsafe.Sizeof(*l.q)) + len(ns.ring)*int(unsafe.Sizeof(node{})) +
		ends + (ns.n-2*estimateNodes)*within/3
}

// lengthen makes a listpack a quicklist if it would be too long with count more elements of together so many bytes.
func (l *List) lengthen(lim Limits, count, bytes int) {
	if l.q != nil || !lim.exceeded(packed.Bytes(l.lp)+bytes, packed.Count(l.lp)+count) {
		return
	}
	q := &quicklist{lim: lim}
	if n := packed.Count(l.lp); n > 0 {
		q.insertNode(0, node{data: l.lp, count: n})
		q.count = n
	}
	l.lp, l.q = nil, q
}

// shorten makes a quicklist of one node a listpack if its size is at most the limit divided by part. After removals
// part is 2, so that a list that grows and shrinks does not change its form at each step.
func (l *List) shorten(lim Limits, part int) {
	if l.q == nil || l.q.nodes.n != 1 {
		return
	}
	n := l.q.nodes.at(0)
	size, count := lim.node()
	if n.plain || len(n.data) > size/part || l.q.count > count/part {
		return
	}
	*l = List{lp: l.q.own(0).data}
}

// Push adds values one after the other at the head or at the tail.
func (l *List) Push(values [][]byte, head bool, lim Limits) {
	bytes := 0
	for _, v := range values {
		bytes += len(v)
	}
	l.lengthen(lim, len(values), bytes)
	for _, v := range values {
		l.push(v, head)
	}
}

func (l *List) push(v []byte, head bool) {
	switch {
	case l.q != nil:
		l.q.push(v, head)
	case head && l.lp != nil:
		l.lp = packed.Insert(l.lp, packed.First(l.lp), packed.String(v))
	default:
		l.lp = packed.Append(l.lp, packed.String(v))
	}
}

// Move moves an element from an end of one list to an end of another, or of the same. There must be an
// element.
func Move(from, to *List, fromHead, toHead bool, lim Limits) {
	var s packed.Scratch
	at := from.end(fromHead)
	value, _ := from.Index(at, &s)
	if from != to {
		to.lengthen(lim, 1, len(value))
		to.push(value, toHead)
		from.Remove(at, 1, lim)
		return
	}
	value = append([]byte(nil), value...)
	from.remove(at, 1)
	to.lengthen(lim, 1, len(value))
	to.push(value, toHead)
	from.shorten(lim, 2)
}

// end returns the index of the element at an end.
func (l *List) end(head bool) int {
	if head {
		return 0
	}
	return l.Len() - 1
}

// Index returns the element with this index, which counts from the end if negative, and whether there is one.
// It may alias the scratch.
func (l *List) Index(index int, s *packed.Scratch) ([]byte, bool) {
	if l.q == nil {
		p := packed.Seek(l.lp, index)
		if p < 0 {
			return nil, false
		}
		return packed.Get(l.lp, p, s), true
	}
	if index < 0 {
		index += l.q.count
	}
	if index < 0 || index >= l.q.count {
		return nil, false
	}
	i, offset := l.q.seek(index)
	return l.q.nodes.at(i).get(offset, s), true
}

// Set replaces the element with this index, which counts from the end if negative, and reports whether there
// is one.
func (l *List) Set(index int, value []byte, lim Limits) bool {
	l.lengthen(lim, 1, len(value))
	n := l.Len()
	if index < 0 {
		index += n
	}
	if index < 0 || index >= n {
		return false
	}
	if l.q == nil {
		l.lp = packed.Replace(l.lp, packed.Seek(l.lp, index), packed.String(value))
		return true
	}
	i, offset := l.q.seek(index)
	l.q.replace(i, offset, value)
	l.shorten(lim, 2)
	return true
}

// Insert puts a value before or after the first element equal to the pivot, and reports whether there is one.
func (l *List) Insert(pivot, value []byte, after bool, lim Limits) bool {
	l.lengthen(lim, 1, len(value))
	if l.q != nil {
		return l.q.insertAt(pivot, value, after)
	}
	p := packed.Find(l.lp, packed.First(l.lp), pivot, 0)
	if p < 0 {
		return false
	}
	if after {
		p = packed.Next(l.lp, p)
	}
	l.lp = packed.Insert(l.lp, p, packed.String(value))
	return true
}

// Remove removes n elements from an index on, fewer if the list ends before; index must be in the list.
func (l *List) Remove(index, n int, lim Limits) {
	l.remove(index, n)
	l.shorten(lim, 2)
}

func (l *List) remove(index, n int) {
	switch {
	case n <= 0:
	case l.q != nil:
		l.q.remove(index, min(n, l.q.count-index))
	default:
		l.lp = packed.Delete(l.lp, packed.Seek(l.lp, index), n)
	}
}

// Trim keeps n elements from an index on and removes the others.
func (l *List) Trim(index, n int, lim Limits) {
	total := l.Len()
	if n <= 0 || index >= total {
		index, n = total, 0
	}
	if index > 0 {
		l.remove(0, index)
	}
	if rest := total - index - n; rest > 0 {
		l.remove(n, rest)
	}
	l.shorten(lim, 2)
}

// RemoveValue removes elements equal to value, at most count (0: all), beginning at the head or the tail, and returns
// how many.
func (l *List) RemoveValue(value []byte, count int, fromTail bool, lim Limits) int {
	if count == 0 {
		count = math.MaxInt
	}
	removed := 0
	if l.q == nil {
		l.lp, removed = removeValue(l.lp, value, count, fromTail)
		return removed
	}
	removed = l.q.removeValue(value, count, fromTail)
	if removed > 0 {
		l.shorten(lim, 2)
	}
	return removed
}

// removeValue is RemoveValue for one listpack.
func removeValue(lp, value []byte, count int, fromTail bool) ([]byte, int) {
	removed := 0
	if fromTail {
		for p := packed.Last(lp); p >= 0 && removed < count; {
			before := packed.Prev(lp, p)
			if packed.Equal(lp, p, value) {
				lp = packed.Delete(lp, p, 1)
				removed++
			}
			p = before
		}
		return lp, removed
	}
	for p := packed.First(lp); removed < count; removed++ {
		if p = packed.Find(lp, p, value, 0); p < 0 {
			break
		}
		lp = packed.Delete(lp, p, 1)
	}
	return lp, removed
}

// Nodes calls fn with the nodes of a quicklist, which DUMP writes as they are: listpacks or, if plain, single elements.
// A list that is a listpack has one node.
func (l *List) Nodes(fn func(data []byte, plain bool)) {
	if l.q == nil {
		fn(l.lp, false)
		return
	}
	for i := range l.q.nodes.n {
		fn(l.q.nodes.at(i).data, l.q.nodes.at(i).plain)
	}
}

// NodeSize returns the NodeSize with which a quicklist was made, see Limits; 0 for a listpack.
func (l *List) NodeSize() int {
	if l.q == nil {
		return 0
	}
	return l.q.lim.NodeSize
}

// Clone returns a copy that shares nothing with l.
func (l *List) Clone() List {
	c := List{lp: packed.Clone(l.lp)}
	if l.q != nil {
		c.q = l.q.clone()
	}
	return c
}

// Begins is the address of a small list's memory, to prefetch it. Another goroutine may be changing the list, so the
// address may be out of date.
//
//go:norace
func (l *List) Begins() *byte { return unsafe.SliceData(l.lp) }
