package zset

import (
	"bytes"
	"math"
)

// order has the entries of a large set in order of (score, member). It is a B+tree whose nodes know how many entries
// are below each child. So the rank of an entry, or the entry of a rank, takes one descent.
//
// A leaf has scores and refs, 12 bytes an entry, in one allocation. It reads members in the arena only if scores are
// equal. An inner node is the same: its entries are the first ones of its children, and the children are beside it.
// Leaves are not linked: a walk descends by rank and returns through the recursion.
type order struct {
	arena *arena
	root  *node
	len   int
}

// fanout is chosen so that a node, and likewise kids, fills an allocation of 1024 bytes (of which Go takes 8).
const (
	fanout    = 83
	mergeMax  = fanout * 3 / 4 // neighbours that fit into this are merged; the rest is room for new entries
	nodeBytes = 1024
)

type node struct {
	kids   *kids // nil in a leaf; it comes first, so that the garbage collector reads no further
	n      uint32
	refs   [fanout]ref
	scores [fanout]float64
}

type kids struct {
	node  [fanout]*node
	count [fanout]uint32 // entries below each
}

// slot is an entry of a node; node and count are for inner nodes only.
type slot struct {
	score float64
	ref   ref
	node  *node
	count uint32
}

func newOrder(a *arena) order { return order{arena: a, root: new(node)} }

// below returns how many of a node's scores are below score. It steps by eight, a cache line, and then one by one. The
// processor predicts that and fetches lines ahead, while a binary search waits for one line after the other. A rank
// among a million takes 310 ns with this, 470 with binary search.
func (n *node) below(score float64) int {
	scores := n.scores[:n.n]
	i := 0
	for i+7 < len(scores) && scores[i+7] < score {
		i += 8
	}
	for i < len(scores) && scores[i] < score {
		i++
	}
	return i
}

// before returns how many entries of a node are before (score, r).
func (o *order) before(n *node, score float64, r ref) int {
	lo := n.below(score)
	if lo == int(n.n) || n.scores[lo] != score || n.refs[lo] == r {
		return lo
	}
	member := o.arena.member(r)
	for hi := int(n.n); lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		if n.scores[mid] == score && n.refs[mid] != r && bytes.Compare(o.arena.member(n.refs[mid]), member) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find returns the place of an entry that is in the leaf. If no other entry has its score, it reads no refs and
// members.
func (o *order) find(n *node, score float64, r ref) int {
	if i := n.below(score); i+1 == int(n.n) || n.scores[i+1] != score {
		return i
	}
	return o.before(n, score, r)
}

// child returns the child of an inner node that has (score, r), or to which it belongs.
func (o *order) child(n *node, score float64, r ref) int {
	i := o.before(n, score, r)
	if i == int(n.n) || n.refs[i] != r {
		i--
	}
	return max(i, 0)
}

func (n *node) set(i int, s slot) {
	n.scores[i], n.refs[i] = s.score, s.ref
	if n.kids != nil {
		n.kids.node[i], n.kids.count[i] = s.node, s.count
	}
}

// asSlot is the slot of a node in its parent.
func (n *node) asSlot() slot {
	count := n.n
	if n.kids != nil {
		count = 0
		for _, c := range n.kids.count[:n.n] {
			count += c
		}
	}
	return slot{n.scores[0], n.refs[0], n, count}
}

// copyTo copies the entries [lo, hi) of n to the place at in m, which may be n.
func (n *node) copyTo(m *node, at, lo, hi int) {
	copy(m.scores[at:], n.scores[lo:hi])
	copy(m.refs[at:], n.refs[lo:hi])
	if n.kids != nil {
		copy(m.kids.node[at:], n.kids.node[lo:hi])
		copy(m.kids.count[at:], n.kids.count[lo:hi])
	}
}

// resize sets the number of entries and clears the children beyond.
func (n *node) resize(size int) {
	if n.kids != nil && size < int(n.n) {
		clear(n.kids.node[size:n.n])
	}
	n.n = uint32(size)
}

// cut removes the entries [lo, hi).
func (n *node) cut(lo, hi int) {
	n.copyTo(n, lo, hi, int(n.n))
	n.resize(int(n.n) - (hi - lo))
}

// add puts an entry in the place at. If the node is full it is split, and its new right neighbour is returned. The last
// node of its level stays full if the entry goes to its end, because entries may be added in rising order.
func (n *node) add(at int, s slot, last bool) (right *node) {
	to := n
	if n.n == fanout {
		half := fanout / 2
		if last && at == fanout {
			half = fanout
		}
		right = new(node)
		if n.kids != nil {
			right.kids = new(kids)
		}
		right.n = uint32(fanout - half)
		n.copyTo(right, 0, half, fanout)
		n.resize(half)
		if at > half || half == fanout {
			to, at = right, at-half
		}
	}
	to.n++
	to.copyTo(to, at+1, at, int(to.n)-1)
	to.set(at, s)
	return right
}

// insert adds a new entry.
func (o *order) insert(score float64, r ref) {
	o.len++
	if right := o.put(o.root, score, r, true); right != nil {
		root := &node{kids: new(kids), n: 2}
		root.set(0, o.root.asSlot())
		root.set(1, right.asSlot())
		o.root = root
	}
}

func (o *order) put(n *node, score float64, r ref, last bool) (right *node) {
	if n.kids == nil {
		return n.add(o.before(n, score, r), slot{score: score, ref: r}, last)
	}
	i := o.child(n, score, r)
	last = last && i == int(n.n)-1
	kid := n.kids.node[i]
	if right := o.put(kid, score, r, last); right != nil {
		n.set(i, kid.asSlot())
		return n.add(i+1, right.asSlot(), last)
	}
	n.scores[i], n.refs[i] = kid.scores[0], kid.refs[0]
	n.kids.count[i]++
	return nil
}

// remove removes an entry, which must be there.
func (o *order) remove(score float64, r ref) {
	o.len--
	o.take(o.root, score, r)
	o.lower()
}

func (o *order) take(n *node, score float64, r ref) {
	if n.kids == nil {
		at := o.find(n, score, r)
		n.cut(at, at+1)
		return
	}
	i := o.child(n, score, r)
	o.take(n.kids.node[i], score, r)
	n.kids.count[i]--
	n.settle(i)
}

// move changes the score of an entry. Most changes are small and leave it in its leaf. If it is between other entries
// there before and after, nothing else is touched.
func (o *order) move(from, to float64, r ref) {
	n := o.root
	for n.kids != nil {
		n = n.kids.node[o.child(n, from, r)]
	}
	at, dest := o.find(n, from, r), o.before(n, to, r)
	switch {
	case 0 < at && at < dest && dest < int(n.n):
		dest--
		copy(n.scores[at:dest], n.scores[at+1:])
		copy(n.refs[at:dest], n.refs[at+1:])
	case 0 < dest && dest <= at:
		copy(n.scores[dest+1:at+1], n.scores[dest:])
		copy(n.refs[dest+1:at+1], n.refs[dest:])
	default:
		o.remove(from, r)
		o.insert(to, r)
		return
	}
	n.scores[dest], n.refs[dest] = to, r
}

// settle repairs a node after entries were removed from its child i: the child may have another first entry, be empty,
// or fit into one node with its neighbour.
func (n *node) settle(i int) {
	kid := n.kids.node[i]
	if kid.n == 0 {
		n.cut(i, i+1)
		return
	}
	n.scores[i], n.refs[i] = kid.scores[0], kid.refs[0]
	if kid.n > fanout/2 {
		return
	}
	for j := max(i-1, 0); j <= i && j+1 < int(n.n); j++ {
		a := n.kids.node[j]
		if kid.kids == nil && n.kids.count[j]+n.kids.count[j+1] > mergeMax {
			continue // known without looking at the neighbour
		}
		if b := n.kids.node[j+1]; a.n+b.n <= mergeMax {
			b.copyTo(a, int(a.n), 0, int(b.n))
			a.n += b.n
			n.kids.count[j] += n.kids.count[j+1]
			n.cut(j+1, j+2)
			return
		}
	}
}

// lower removes root nodes with one child or none.
func (o *order) lower() {
	for o.root.kids != nil && o.root.n <= 1 {
		if o.root.n == 0 {
			o.root = new(node)
			return
		}
		o.root = o.root.kids.node[0]
	}
}

// removeRange removes the entries of rank lo up to hi-1 and calls fn for them, some at a time. fn may free the entries,
// because no members are compared meanwhile.
func (o *order) removeRange(lo, hi int, fn func(scores []float64, refs []ref)) {
	o.len -= hi - lo
	o.root.removeRange(lo, hi, fn)
	o.lower()
}

func (n *node) removeRange(lo, hi int, fn func(scores []float64, refs []ref)) {
	if n.kids == nil {
		fn(n.scores[lo:hi], n.refs[lo:hi])
		n.cut(lo, hi)
		return
	}
	first, end, base := -1, 0, 0 // the children that lose entries
	gone, goneEnd := -1, -1      // those that lose all
	for i := 0; i < int(n.n) && base < hi; i++ {
		count := int(n.kids.count[i])
		from, to := max(lo-base, 0), min(hi-base, count)
		base += count
		if from >= to {
			continue
		}
		if first < 0 {
			first = i
		}
		end = i + 1
		n.kids.node[i].removeRange(from, to, fn)
		n.kids.count[i] -= uint32(to - from)
		if to-from == count {
			if gone < 0 {
				gone = i
			}
			goneEnd = i + 1
		}
	}
	if gone >= 0 {
		n.cut(gone, goneEnd)
		end -= goneEnd - gone
	}
	// At most the two children at the ends of the range remain, with a part of their entries.
	for i := end - 1; i >= first; i-- {
		n.settle(i)
	}
}

// first is the leaf with the first entry, last the one with the last.
func (o *order) first() *node {
	n := o.root
	for n.kids != nil {
		n = n.kids.node[0]
	}
	return n
}

func (o *order) last() *node {
	n := o.root
	for n.kids != nil {
		n = n.kids.node[n.n-1]
	}
	return n
}

// replace replaces the ref of an entry that was moved in the arena.
func (o *order) replace(score float64, from, to ref) {
	n := o.root
	for n.kids != nil {
		i := o.child(n, score, from)
		if n.refs[i] == from {
			n.refs[i] = to
		}
		n = n.kids.node[i]
	}
	n.refs[o.before(n, score, from)] = to
}

// rank returns how many entries are before (score, r).
func (o *order) rank(score float64, r ref) int {
	n, rank := o.root, 0
	for n.kids != nil {
		i := o.child(n, score, r)
		rank += n.kids.sum(i)
		n = n.kids.node[i]
	}
	return rank + o.find(n, score, r)
}

// sum returns how many entries are below the children before i.
func (k *kids) sum(i int) int {
	total := uint32(0)
	for _, c := range k.count[:i] {
		total += c
	}
	return int(total)
}

// countScore returns how many entries have a score below score or, with orEqual, equal to it.
func (o *order) countScore(score float64, orEqual bool) int {
	if orEqual {
		if math.IsInf(score, 1) {
			return o.len
		}
		score = math.Nextafter(score, math.Inf(1))
	}
	if math.IsInf(score, -1) {
		return 0
	}
	n, count := o.root, 0
	for n.kids != nil {
		i := max(n.below(score)-1, 0)
		count += n.kids.sum(i)
		n = n.kids.node[i]
	}
	return count + n.below(score)
}

// countMembers returns how many entries at the front satisfy before.
func (o *order) countMembers(before func(member []byte) bool) int {
	n, count := o.root, 0
	for {
		lo := 0
		for hi := int(n.n); lo < hi; {
			mid := int(uint(lo+hi) >> 1)
			if before(o.arena.member(n.refs[mid])) {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if n.kids == nil {
			return count + lo
		}
		lo = max(lo-1, 0)
		count += n.kids.sum(lo)
		n = n.kids.node[lo]
	}
}

// ascend calls fn for the entries of rank lo up to hi-1, some at a time, until it
// returns false.
func (n *node) ascend(lo, hi int, fn func(scores []float64, refs []ref) bool) bool {
	if n.kids == nil {
		return fn(n.scores[lo:hi], n.refs[lo:hi])
	}
	for i := 0; lo < hi; i++ {
		count := int(n.kids.count[i])
		if lo < count && !n.kids.node[i].ascend(lo, min(hi, count), fn) {
			return false
		}
		lo, hi = max(lo-count, 0), hi-count
	}
	return true
}

// descend calls fn for the entries of rank hi-1 down to lo, some at a time, until it returns false. The entries of one
// call are in ascending order. size is how many entries are below the node.
func (n *node) descend(lo, hi, size int, fn func(scores []float64, refs []ref) bool) bool {
	if n.kids == nil {
		return fn(n.scores[lo:hi], n.refs[lo:hi])
	}
	for i := int(n.n) - 1; i >= 0 && lo < hi; i-- {
		count := int(n.kids.count[i])
		size -= count // the rank of the child's first entry
		if size < hi {
			if !n.kids.node[i].descend(max(lo-size, 0), hi-size, count, fn) {
				return false
			}
			hi = size
		}
	}
	return true
}

// memoryUsage does not look at the leaves, because their parents know their number.
func (n *node) memoryUsage() int {
	if n.kids == nil {
		return nodeBytes
	}
	bytes := 2 * nodeBytes
	if n.kids.node[0].kids == nil {
		return bytes + int(n.n)*nodeBytes
	}
	for _, kid := range n.kids.node[:n.n] {
		bytes += kid.memoryUsage()
	}
	return bytes
}
