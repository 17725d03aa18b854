package list

import (
	"bytes"

	"github.com/limitkv/limitkv/engine/packed"
)

// Iter walks over the elements from one on, to the tail or to the head. A write to the list invalidates it.
//
//	for it := l.Iter(0, false); it.Next(); { it.Value() … }
type Iter struct {
	l        *List
	lp       []byte // the listpack it is in
	node     int    // its node
	at, next int    // positions; next is -1 at the end of the listpack
	plain    bool   // lp is an element
	reverse  bool
	buffer   packed.Scratch
}

// Iter returns an iterator before the element with this index, which must be in the list or just beyond it.
func (l *List) Iter(index int, reverse bool) Iter {
	it := Iter{l: l, reverse: reverse, next: -1}
	switch n := l.Len(); {
	case index < 0 || index >= n:
		it.node = -1
	case l.q == nil:
		it.lp = l.lp
		it.next = packed.Seek(l.lp, index)
		it.node = -1
	default:
		i, offset := l.q.seek(index)
		it.enter(i)
		if !it.plain {
			it.next = packed.Seek(it.lp, offset)
		}
	}
	return it
}

// enter goes before the first element of node i in the direction of the iterator.
func (it *Iter) enter(i int) {
	n := it.l.q.nodes.at(i)
	it.node, it.lp, it.plain, it.next = i, n.data, n.plain, 0
	if !n.plain {
		it.next = packed.First(n.data)
		if it.reverse {
			it.next = packed.Last(n.data)
		}
	}
}

// Next goes to the next element and reports whether there is one.
func (it *Iter) Next() bool {
	if it.next < 0 {
		if it.node < 0 {
			return false
		}
		i := it.node + 1
		if it.reverse {
			i = it.node - 1
		}
		if i < 0 || i >= it.l.q.nodes.n {
			return false
		}
		it.enter(i)
	}
	it.at = it.next
	switch {
	case it.plain:
		it.next = -1
	case it.reverse:
		it.next = packed.Prev(it.lp, it.at)
	default:
		if it.next = packed.Next(it.lp, it.at); it.next >= packed.End(it.lp) {
			it.next = -1
		}
	}
	return true
}

// Value returns the element. It may alias the list or the iterator.
func (it *Iter) Value() []byte {
	if it.plain {
		return it.lp
	}
	return packed.Get(it.lp, it.at, &it.buffer)
}

// Equal reports whether the element is v.
func (it *Iter) Equal(v []byte) bool {
	if it.plain {
		return bytes.Equal(it.lp, v)
	}
	return packed.Equal(it.lp, it.at, v)
}
