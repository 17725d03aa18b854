package zset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// check verifies everything that must hold for a set between two calls.
func (s *Set) check() error {
	if s.big == nil {
		return s.packed.check()
	}
	if s.packed != nil {
		return fmt.Errorf("both forms at once")
	}
	return s.big.check()
}

func (p packed) check() error {
	if len(p) > packedBytesMax || p.count() > packedEntriesMax {
		return fmt.Errorf("packed: %d entries, %d bytes", p.count(), len(p))
	}
	n := 0
	var last []byte
	lastScore := math.Inf(-1)
	for at := packedHeader; at < len(p); n++ {
		member, end := p.member(at)
		score := p.score(at)
		if score == 0 && math.Signbit(score) && !p.skiplist() {
			return fmt.Errorf("packed: -0")
		}
		if n > 0 && (score < lastScore || score == lastScore && bytes.Compare(last, member) >= 0) {
			return fmt.Errorf("packed: entry %d is out of order", n)
		}
		last, lastScore, at = member, score, end
	}
	if len(p) > 0 && len(p) != p.bytes() {
		return fmt.Errorf("packed: %d bytes, header says %d", len(p), p.bytes())
	}
	if n != p.count() {
		return fmt.Errorf("packed: %d entries, count says %d", n, p.count())
	}
	return nil
}

func (l *large) check() error {
	if err := l.arena.check(); err != nil {
		return err
	}
	if err := l.checkIndex(); err != nil {
		return err
	}
	n := 0
	var err error
	var last []byte
	var lastScore float64
	seen := map[ref]bool{}
	if size, _, err := l.order.root.check(true); err != nil || size != l.order.len {
		return fmt.Errorf("order of %d: %d entries, %v", l.order.len, size, err)
	}
	l.order.root.ascend(0, l.len(), func(scores []float64, refs []ref) bool {
		for i, r := range refs {
			score := scores[i]
			member := l.arena.member(r)
			switch found, ok := l.find(wyhash.Sum(member), member); {
			case math.Float64bits(score) != math.Float64bits(l.arena.score(r)):
				err = fmt.Errorf("order: score %v, arena says %v", score, l.arena.score(r))
			case n > 0 && (score < lastScore || score == lastScore && bytes.Compare(last, member) >= 0):
				err = fmt.Errorf("order: rank %d is out of order", n)
			case !ok || found != r:
				err = fmt.Errorf("order: ref %d is not what the index finds", r)
			case seen[r]:
				err = fmt.Errorf("order: ref %d twice", r)
			}
			seen[r] = true
			last, lastScore = member, score
			n++
		}
		return err == nil
	})
	if err == nil && n != l.len() {
		err = fmt.Errorf("order has %d entries, index %d", n, l.len())
	}
	return err
}

// check returns how many entries are below the node, and levels.
func (n *node) check(isRoot bool) (size, depth int, err error) {
	if n.n > fanout || n.n == 0 && !(isRoot && n.kids == nil) || isRoot && n.kids != nil && n.n < 2 {
		return 0, 0, fmt.Errorf("node with %d entries", n.n)
	}
	if n.kids == nil {
		return int(n.n), 1, nil
	}
	for i := range n.kids.node {
		if i >= int(n.n) {
			if n.kids.node[i] != nil {
				return 0, 0, fmt.Errorf("node keeps a child that is gone")
			}
			continue
		}
		kid := n.kids.node[i]
		count, levels, err := kid.check(false)
		switch {
		case err != nil:
			return 0, 0, err
		case count != int(n.kids.count[i]):
			return 0, 0, fmt.Errorf("%d entries below a child, node says %d", count, n.kids.count[i])
		case n.refs[i] != kid.refs[0] || n.scores[i] != kid.scores[0]:
			return 0, 0, fmt.Errorf("child starts with ref %d, node says %d", kid.refs[0], n.refs[i])
		case depth > 0 && levels != depth:
			return 0, 0, fmt.Errorf("child has %d levels, another %d", levels, depth)
		}
		size, depth = size+count, levels
	}
	return size, depth + 1, nil
}

func (l *large) checkIndex() error {
	x := &l.index
	if len(x.dir) != 1<<x.bits {
		return fmt.Errorf("index: %d bits, directory of %d", x.bits, len(x.dir))
	}
	count, deepest := 0, 0
	for i := 0; i < len(x.dir); {
		g := x.dir[i]
		places := 1 << (x.bits - uint(g.depth))
		if i%places != 0 {
			return fmt.Errorf("index: segment of depth %d at %d", g.depth, i)
		}
		for j := range places {
			if x.dir[i+j] != g || x.depths[i+j] != g.depth {
				return fmt.Errorf("index: segment missing at %d", i+j)
			}
		}
		if uint(g.depth) == x.bits {
			deepest++
		}
		used, dead := 0, 0
		for j := range slots {
			p, j := &g.groups[j/groupSlots], j%groupSlots
			r, t := p.refs[j], p.tag(j)
			switch {
			case t == tagDead && r == 0:
				dead++
			case t < tagEmpty && r != 0:
				used++
				h := l.rehash(r)
				if found, ok := x.find(&l.arena, h, l.arena.member(r)); x.segment(h) != g || t != tag(h) || !ok || found != r {
					return fmt.Errorf("index: ref %d is not found in its segment", r)
				}
			case t != tagEmpty || r != 0:
				return fmt.Errorf("index: tag %x with ref %d", t, r)
			}
		}
		if used != int(g.used) || dead != int(g.dead) || used+dead > segmentMax {
			return fmt.Errorf("index: %d used, %d dead, segment says %d, %d", used, dead, g.used, g.dead)
		}
		count += used
		i += places
	}
	if deepest == 0 {
		return fmt.Errorf("index: a directory of %d bits is larger than needed", x.bits)
	}
	if count != x.count || deepest != x.deepest {
		return fmt.Errorf("index: %d members, %d deepest, it says %d, %d", count, deepest, x.count, x.deepest)
	}
	return nil
}

func (a *arena) check() error {
	units, holes := 0, 0
	free := map[ref]int{}
	var err error
	for i, c := range a.chunks {
		if c == nil {
			if a.live[i] != 0 {
				err = fmt.Errorf("arena: chunk %d is gone and has %d units", i, a.live[i])
			}
			continue
		}
		live, end := 0, firstUnit
		a.walk(i, func(r ref, n int, isFree bool) {
			end += n
			if isFree {
				holes += n
				free[r] = n
			} else {
				live += n
			}
		})
		if end*unitBytes != len(c) || live != int(a.live[i]) {
			err = fmt.Errorf("arena: chunk %d ends at %d of %d, %d living, it says %d", i, end*unitBytes, len(c), live, a.live[i])
		}
		units += live
	}
	for n, r := range a.free {
		for prev := ref(0); r != 0; {
			b := a.at(r)
			if free[r] != n || ref(binary.LittleEndian.Uint32(b[4:])) != prev {
				return fmt.Errorf("arena: free list %d is broken at %d", n, r)
			}
			delete(free, r)
			prev, r = r, ref(binary.LittleEndian.Uint32(b))
		}
	}
	if len(free) > 0 {
		return fmt.Errorf("arena: %d free entries in no list", len(free))
	}
	if units != a.units || holes != a.holes {
		return fmt.Errorf("arena: %d units, %d free, it says %d, %d", units, holes, a.units, a.holes)
	}
	used := 0
	for _, m := range a.long {
		if m != nil {
			used++
		}
	}
	if used+len(a.unused) != len(a.long) {
		return fmt.Errorf("arena: %d long members, %d unused of %d", used, len(a.unused), len(a.long))
	}
	return err
}

// model is the simplest sorted set: a sorted slice.
type model []entry

type entry struct {
	member string
	score  float64
}

func (m model) find(member string) int {
	for i := range m {
		if m[i].member == member {
			return i
		}
	}
	return -1
}

func (m *model) set(member string, score float64) {
	m.remove(member)
	at := sort.Search(len(*m), func(i int) bool {
		e := (*m)[i]
		return e.score > score || e.score == score && e.member > member
	})
	*m = append(*m, entry{})
	copy((*m)[at+1:], (*m)[at:])
	(*m)[at] = entry{member, score}
}

func (m *model) remove(member string) bool {
	i := m.find(member)
	if i >= 0 {
		m.cut(i, i+1)
	}
	return i >= 0
}

func (m *model) cut(lo, hi int) {
	*m = append((*m)[:lo], (*m)[hi:]...)
}

// add is ZADD, written from its documentation and not from decide.
func (m *model) add(member string, score float64, flags Flags) (Outcome, float64) {
	i := m.find(member)
	if i < 0 {
		if flags&XX != 0 {
			return Kept, 0
		}
		m.set(member, score)
		return Added, score
	}
	old := (*m)[i].score
	next := score
	if flags&Incr != 0 {
		next = old + score
	}
	switch {
	case flags&NX != 0:
		return Kept, 0
	case math.IsNaN(next):
		return NaN, 0
	case flags&GT != 0 && !(next > old), flags&LT != 0 && !(next < old):
		return Kept, 0
	case next == old:
		return Same, next
	}
	m.set(member, next)
	return Updated, next
}
