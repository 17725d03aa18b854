package list

// The quicklist. Its rules for filling, splitting and merging nodes are Redis's.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine/packed"
)

// node is a part of the list: a listpack, or one large element as it is.
type node struct {
	data  []byte
	count int
	plain bool
	// shared: an image uses the data, too.
	shared bool
}

// entryOverhead is what Redis adds to an element's length to estimate what it takes in a listpack.
const entryOverhead = 8

func (n *node) get(offset int, s *packed.Scratch) []byte {
	if n.plain {
		return n.data
	}
	return packed.Get(n.data, packed.Seek(n.data, offset), s)
}

// own returns node i to change its data, which it copies first if an image shares them.
func (q *quicklist) own(i int) *node {
	n := q.nodes.at(i)
	if n.shared {
		n.data, n.shared = packed.Clone(n.data), false
	}
	return n
}

type quicklist struct {
	nodes nodes
	count int    // elements
	lim   Limits // the limits when it was made, as in Redis
}

// fits reports whether node i exists and has room for an element of size bytes.
func (q *quicklist) fits(i, size int) bool {
	if i < 0 || i >= q.nodes.n {
		return false
	}
	n := q.nodes.at(i)
	return !n.plain && !q.lim.large(size) && !q.lim.exceeded(len(n.data)+size+entryOverhead, n.count+1)
}

// insertNode makes x node i. It compacts the node that was first or last until now, which will hardly grow any more.
func (q *quicklist) insertNode(i int, x node) {
	q.nodes.insert(i, x)
	for _, j := range [...]int{1, q.nodes.n - 2} {
		if j > 0 && j < q.nodes.n-1 && !q.nodes.at(j).plain {
			q.nodes.at(j).data = packed.Compact(q.nodes.at(j).data)
		}
	}
}

func plainNode(v []byte) node { return node{data: append([]byte(nil), v...), count: 1, plain: true} }

func packedNode(v []byte) node { return node{data: packed.Append(nil, packed.String(v)), count: 1} }

func (q *quicklist) push(v []byte, head bool) {
	end, beyond := q.nodes.n-1, q.nodes.n
	if head {
		end, beyond = 0, 0
	}
	q.count++
	switch {
	case q.lim.large(len(v)):
		q.insertNode(beyond, plainNode(v))
	case q.fits(end, len(v)):
		q.addTo(end, v, head)
	default:
		q.insertNode(beyond, packedNode(v))
	}
}

// addTo adds an element at the head or the tail of node i.
func (q *quicklist) addTo(i int, v []byte, head bool) {
	n := q.own(i)
	if head {
		n.data = packed.Insert(n.data, packed.First(n.data), packed.String(v))
	} else {
		n.data = packed.Append(n.data, packed.String(v))
	}
	n.count++
}

// seek returns the node and the offset in it of the element with this index, which must exist.
func (q *quicklist) seek(index int) (i, offset int) {
	if index < q.count/2 {
		for index >= q.nodes.at(i).count {
			index -= q.nodes.at(i).count
			i++
		}
		return i, index
	}
	i = q.nodes.n - 1
	for before := q.count - q.nodes.at(i).count; ; before -= q.nodes.at(i).count {
		if index >= before {
			return i, index - before
		}
		i--
	}
}

// split divides node i before the element at offset.
func (q *quicklist) split(i, offset int) {
	n := *q.nodes.at(i)
	p := packed.Seek(n.data, offset)
	q.nodes.insert(i+1, node{data: packed.Slice(n.data, p, packed.End(n.data), n.count-offset), count: n.count - offset})
	*q.nodes.at(i) = node{data: packed.Slice(n.data, packed.First(n.data), p, offset), count: offset}
}

// merge joins nodes i and i+1 if both exist and fit into one node, and reports whether it did.
func (q *quicklist) merge(i int) bool {
	if i < 0 || i+1 >= q.nodes.n {
		return false
	}
	a, b := q.nodes.at(i), q.nodes.at(i+1)
	if a.plain || b.plain || q.lim.exceeded(len(a.data)+len(b.data)-packed.EmptyBytes, a.count+b.count) {
		return false
	}
	a = q.own(i)
	a.data = packed.Compact(packed.Concat(a.data, b.data))
	a.count += b.count
	q.nodes.remove(i + 1)
	return true
}

// mergeAround joins the two nodes before node i, the two after it, and it with its neighbours, where they fit into one
// node.
func (q *quicklist) mergeAround(i int) {
	if q.merge(i - 2) {
		i--
	}
	q.merge(i + 1)
	if q.merge(i - 1) {
		i--
	}
	q.merge(i)
}

// insert puts a value before or after the element at offset in node i.
func (q *quicklist) insert(i, offset int, v []byte, after bool) {
	n := q.nodes.at(i)
	full := !q.fits(i, len(v))
	atEnd, beside, newAt := offset == 0, i-1, i
	if after {
		atEnd, beside, newAt = offset == n.count-1, i+1, i+1
		offset++
	}
	q.count++
	switch {
	case q.lim.large(len(v)):
		if !n.plain && !atEnd {
			q.split(i, offset)
			newAt = i + 1
		}
		q.insertNode(newAt, plainNode(v))
	case !full:
		n = q.own(i)
		p := packed.End(n.data)
		if offset < n.count {
			p = packed.Seek(n.data, offset)
		}
		n.data = packed.Insert(n.data, p, packed.String(v))
		n.count++
	case atEnd && q.fits(beside, len(v)):
		q.addTo(beside, v, after)
	case atEnd:
		q.insertNode(newAt, packedNode(v))
	default:
		// The new element goes into one part, and nodes are merged around the other part.
		q.split(i, offset)
		if after {
			q.addTo(i+1, v, true)
			q.mergeAround(i)
		} else {
			q.addTo(i, v, false)
			q.mergeAround(i + 1)
		}
	}
}

// insertAt inserts beside the first element equal to the pivot.
func (q *quicklist) insertAt(pivot, value []byte, after bool) bool {
	for i := range q.nodes.n {
		n := q.nodes.at(i)
		if n.plain {
			if bytes.Equal(n.data, pivot) {
				q.insert(i, 0, value, after)
				return true
			}
			continue
		}
		at := packed.Find(n.data, packed.First(n.data), pivot, 0)
		if at < 0 {
			continue
		}
		offset := 0
		for p := packed.First(n.data); p < at; p = packed.Next(n.data, p) {
			offset++
		}
		q.insert(i, offset, value, after)
		return true
	}
	return false
}

// replace replaces the element at offset in node i.
func (q *quicklist) replace(i, offset int, v []byte) {
	n := q.nodes.at(i)
	large := q.lim.large(len(v))
	switch {
	case !n.plain && !large:
		n = q.own(i)
		n.data = packed.Replace(n.data, packed.Seek(n.data, offset), packed.String(v))
	case n.plain && large:
		*n = plainNode(v)
	case n.plain:
		q.insert(i, 0, v, true)
		q.removeNode(i)
	default:
		if offset != n.count-1 {
			q.split(i, offset+1)
		}
		q.nodes.insert(i+1, plainNode(v))
		q.count++
		if q.nodes.at(i).count == 1 {
			q.removeNode(i)
			return
		}
		q.removeFrom(i, offset, 1)
		q.mergeAround(i + 1)
	}
}

func (q *quicklist) removeNode(i int) {
	q.count -= q.nodes.at(i).count
	q.nodes.remove(i)
}

// removeFrom removes n elements of node i from an offset on, but not all elements of the node.
func (q *quicklist) removeFrom(i, offset, n int) {
	x := q.own(i)
	x.data = packed.Delete(x.data, packed.Seek(x.data, offset), n)
	x.count -= n
	q.count -= n
}

// remove removes n elements from an index on, which must exist.
func (q *quicklist) remove(index, n int) {
	i, offset := q.seek(index)
	for n > 0 {
		x := q.nodes.at(i)
		k := min(n, x.count-offset)
		if k == x.count {
			q.removeNode(i)
		} else {
			q.removeFrom(i, offset, k)
			i++
		}
		n -= k
		offset = 0
	}
}

func (q *quicklist) removeValue(value []byte, count int, fromTail bool) int {
	removed := 0
	i, step := 0, 1
	if fromTail {
		i, step = q.nodes.n-1, -1
	}
	for i >= 0 && i < q.nodes.n && removed < count {
		n := q.nodes.at(i)
		k := 0
		if n.plain {
			if bytes.Equal(n.data, value) {
				k = 1
			}
		} else if packed.Find(n.data, packed.First(n.data), value, 0) >= 0 {
			n = q.own(i)
			n.data, k = removeValue(n.data, value, count-removed, fromTail)
		}
		n.count -= k
		q.count -= k
		removed += k
		if n.count == 0 {
			q.nodes.remove(i)
			if !fromTail {
				continue
			}
		}
		i += step
	}
	return removed
}

func (q *quicklist) clone() *quicklist {
	c := &quicklist{count: q.count, lim: q.lim}
	c.nodes.resize(len(q.nodes.ring))
	c.nodes.n = q.nodes.n
	for i := range q.nodes.n {
		n := *q.nodes.at(i)
		n.data = append([]byte(nil), n.data...)
		*c.nodes.at(i) = n
	}
	return c
}
