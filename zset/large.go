package zset

import "github.com/limitkv/limitkv/zset/wyhash"

// large is the form of a set that is too large for the packed one.
type large struct {
	arena    arena
	index    index
	order    order
	skiplist bool   // whether Encoding returns "skiplist"
	ahead    int    // for how many more entries at an end the data that their removal needs was read
	image    *Image // nil unless one is under way
}

func newLarge(skiplist bool) *large {
	l := &large{index: newIndex(), skiplist: skiplist}
	l.order = newOrder(&l.arena)
	return l
}

func (l *large) len() int { return l.index.count }

func (l *large) rehash(r ref) uint64 { return wyhash.Sum(l.arena.member(r)) }

func (l *large) find(h uint64, member []byte) (ref, bool) {
	return l.index.find(&l.arena, h, member)
}

// insert adds a new member.
func (l *large) insert(h uint64, member []byte, score float64) {
	if l.image != nil {
		l.image.note(h, member)
	}
	r := l.arena.add(member, score)
	l.index.insert(h, r, l.rehash)
	l.order.insert(score, r)
}

// rescore changes the score of an entry.
func (l *large) rescore(r ref, score float64) {
	if l.image != nil {
		l.image.keep(r)
	}
	l.order.move(l.arena.score(r), score, r)
	l.arena.setScore(r, score)
}

// remove removes an entry.
func (l *large) remove(h uint64, r ref) {
	l.order.remove(l.arena.score(r), r)
	l.drop(h, r)
	l.tidy()
}

// drop removes an entry that is no longer in the order.
func (l *large) drop(h uint64, r ref) {
	if l.image != nil {
		l.image.leaves(h, r)
	}
	l.index.remove(h, r, l.rehash)
	l.arena.remove(r)
}

func (l *large) removeRange(lo, hi int) { l.takeRange(lo, hi, nil) }

// takeRange removes a range. If fn is not nil, it is called with each member before.
func (l *large) takeRange(lo, hi int, fn func(member []byte, score float64)) {
	l.order.removeRange(lo, hi, func(scores []float64, refs []ref) {
		for i, r := range refs {
			if left := refs[i:]; i%aheadMax == 0 && len(left) > 1 {
				l.readAhead(left[:min(aheadMax, len(left))])
			}
			member := l.arena.member(r)
			if fn != nil {
				fn(member, scores[i])
			}
			l.drop(wyhash.Sum(member), r)
		}
	})
	for range hi - lo {
		l.tidy()
	}
}

// popMin removes the first n members, n > 0, and calls fn with each before.
func (l *large) popMin(n int, fn func(member []byte, score float64)) {
	if n == 1 {
		leaf := l.order.first()
		l.nears(leaf.refs[:min(aheadMax, leaf.n)])
	}
	l.takeRange(0, n, fn)
}

// popMax is popMin for the last members, beginning with the last one.
func (l *large) popMax(n int, fn func(member []byte, score float64)) {
	if n == 1 {
		leaf := l.order.last()
		l.nears(leaf.refs[leaf.n-min(aheadMax, leaf.n) : leaf.n])
		l.takeRange(l.len()-1, l.len(), fn)
		return
	}
	l.descend(l.len()-n, l.len(), func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	l.removeRange(l.len()-n, l.len())
}

// nears is called before one entry is popped at an end, with this entry and the next ones. It reads all of them,
// because a caller that pops one entry mostly pops more.
func (l *large) nears(refs []ref) {
	if l.ahead == 0 {
		l.ahead = len(refs)
		l.readAhead(refs)
	}
	l.ahead--
}

// tidy releases memory, one chunk at most.
func (l *large) tidy() {
	if !l.arena.sparse() {
		return
	}
	victim := l.arena.victim()
	if victim < 0 {
		return
	}
	l.arena.evacuate(victim, func(from, to ref) {
		l.index.replace(l.rehash(to), from, to)
		l.order.replace(l.arena.score(to), from, to)
	})
}

func (l *large) ascend(lo, hi int, fn func(member []byte, score float64) bool) {
	l.order.root.ascend(lo, hi, func(scores []float64, refs []ref) bool {
		for i, r := range refs {
			if left := refs[i:]; i%aheadMax == 0 && len(left) > 1 {
				l.arena.readAhead(left[:min(aheadMax, len(left))])
			}
			if !fn(l.arena.member(r), scores[i]) {
				return false
			}
		}
		return true
	})
}

func (l *large) descend(lo, hi int, fn func(member []byte, score float64) bool) {
	l.order.root.descend(lo, hi, l.order.len, func(scores []float64, refs []ref) bool {
		for n := len(refs); n > 0; n-- {
			if (len(refs)-n)%aheadMax == 0 && n > 1 {
				l.arena.readAhead(refs[max(0, n-aheadMax):n])
			}
			if !fn(l.arena.member(refs[n-1]), scores[n-1]) {
				return false
			}
		}
		return true
	})
}

func (l *large) scan(cursor uint64, count int, fn func(member []byte, score float64)) uint64 {
	return l.index.scan(cursor, count, l.rehash, func(r ref) { fn(l.arena.member(r), l.arena.score(r)) })
}

func (l *large) clone() *large {
	c := newLarge(l.skiplist)
	l.ascend(0, l.len(), func(member []byte, score float64) bool {
		c.insert(wyhash.Sum(member), member, score)
		return true
	})
	return c
}

// How full nodes of the order and segments of the index are on average.
const (
	nodeFill    = fanout * 7 / 10
	segmentFill = segmentMax * 7 / 10
)

// memoryEstimate is memoryUsage without a look at each part.
func (l *large) memoryEstimate() int {
	n := l.len()
	bytes := 256 + (n/nodeFill+1)*nodeBytes + (n/segmentFill+1)*segmentBytes + 9*len(l.index.dir)
	a := &l.arena
	bytes += 30*len(a.chunks) + 28*len(a.long) + a.longs + (len(a.chunks)-len(a.spare))*chunkBytes
	if len(a.chunks) == 1 {
		bytes += cap(a.chunks[0]) - chunkBytes
	}
	return bytes
}

func (l *large) memoryUsage() int {
	return 256 + l.arena.memoryUsage() + l.index.memoryUsage() + l.order.root.memoryUsage()
}
