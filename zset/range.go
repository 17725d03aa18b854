package zset

// Ranges. Every range of the sorted set commands, by rank, score or member, is
// an interval [lo, hi) of ranks, and each bound of it is found in O(log n). So
// there is one way to walk, to count and to remove: a count is hi - lo, an
// offset is added to lo, a limit cuts hi, and ZREMRANGEBYSCORE is RemoveRange.

// ScoreBound is one end of a range by score: 5 or (5. An infinite bound is an
// infinite Score, which a member may have too.
type ScoreBound struct {
	Score     float64
	Exclusive bool
}

// LexKind says which of - + [m (m a LexBound is.
type LexKind uint8

// Kinds of LexBound.
const (
	LexMin       LexKind = iota // "-", before every member
	LexInclusive                // "[m"
	LexExclusive                // "(m"
	LexMax                      // "+", after every member
)

// LexBound is one end of a range by member.
type LexBound struct {
	Kind   LexKind
	Member []byte // for LexInclusive and LexExclusive
}

// before reports whether member lies before a range that starts at b.
func (b *LexBound) before(member []byte) bool {
	switch b.Kind {
	case LexMin:
		return false
	case LexMax:
		return true
	case LexInclusive:
		return string(member) < string(b.Member)
	default:
		return string(member) <= string(b.Member)
	}
}

// within reports whether member lies within a range that ends at b.
func (b *LexBound) within(member []byte) bool {
	switch b.Kind {
	case LexMin:
		return false
	case LexMax:
		return true
	case LexInclusive:
		return string(member) <= string(b.Member)
	default:
		return string(member) < string(b.Member)
	}
}

// emptyLex reports whether no member at all can be in the range, for example because its ends are crossed.
func emptyLex(from, to *LexBound) bool {
	if from.Kind == LexMax || to.Kind == LexMin {
		return true
	}
	if from.Kind == LexMin || to.Kind == LexMax {
		return false
	}
	if string(from.Member) == string(to.Member) {
		return from.Kind == LexExclusive || to.Kind == LexExclusive
	}
	return string(from.Member) > string(to.Member)
}

// ScoreRange returns the ranks [lo, hi) of the members with a score between
// the two bounds; lo == hi if there are none.
func (s *Set) ScoreRange(from, to ScoreBound) (lo, hi int) {
	if s.big != nil {
		lo = s.big.order.countScore(from.Score, from.Exclusive)
		hi = s.big.order.countScore(to.Score, !to.Exclusive)
	} else {
		lo = s.packed.countScore(from.Score, from.Exclusive)
		hi = s.packed.countScore(to.Score, !to.Exclusive)
	}
	return lo, max(lo, hi)
}

// LexRange returns the ranks [lo, hi) of the members between the two bounds; lo == hi if there are none. As in Redis
// the result has a meaning only if all scores are equal. If they are not, a packed set answers as Redis does, which
// walks from the front or, with reverse (ZREVRANGEBYLEX), from the back. A large set's answer is then unspecified, as
// in Redis.
func (s *Set) LexRange(from, to LexBound, reverse bool) (lo, hi int) {
	if emptyLex(&from, &to) {
		return 0, 0
	}
	if s.big == nil {
		return s.packed.lexRange(&from, &to, reverse)
	}
	lo = s.big.order.countMembers(from.before)
	hi = s.big.order.countMembers(to.within)
	return lo, max(lo, hi)
}

// Ascend calls fn for the members of rank lo up to hi-1 until it returns false. Ranks outside the set are skipped. fn
// must not write to the set.
func (s *Set) Ascend(lo, hi int, fn func(member []byte, score float64) bool) {
	if lo, hi = s.clip(lo, hi); lo >= hi {
		return
	}
	if s.big != nil {
		s.big.ascend(lo, hi, fn)
	} else {
		s.packed.ascend(lo, hi, fn)
	}
}

// Descend calls fn for the members of rank hi-1 down to lo until it returns
// false. fn must not write to the set.
func (s *Set) Descend(lo, hi int, fn func(member []byte, score float64) bool) {
	if lo, hi = s.clip(lo, hi); lo >= hi {
		return
	}
	if s.big != nil {
		s.big.descend(lo, hi, fn)
	} else {
		s.packed.descend(lo, hi, fn)
	}
}

// RemoveRange removes the members of rank lo up to hi-1 and returns how many.
func (s *Set) RemoveRange(lo, hi int) int {
	if lo, hi = s.clip(lo, hi); lo >= hi {
		return 0
	}
	if s.big != nil {
		s.big.removeRange(lo, hi)
	} else {
		s.packed.removeRange(lo, hi)
	}
	return hi - lo
}

// PopMin removes the first n members, or all if there are fewer, and calls fn for each, lowest first, before it is
// removed. It returns how many.
func (s *Set) PopMin(n int, fn func(member []byte, score float64)) int {
	n = min(n, s.Len())
	switch {
	case n <= 0:
		return 0
	case s.big != nil:
		s.big.popMin(n, fn)
		return n
	}
	s.packed.ascend(0, n, func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	s.packed.removeRange(0, n)
	return n
}

// PopMax removes the last n members, or all if there are fewer, and calls fn for each, highest first, before it is
// removed. It returns how many.
func (s *Set) PopMax(n int, fn func(member []byte, score float64)) int {
	size := s.Len()
	n = min(n, size)
	switch {
	case n <= 0:
		return 0
	case s.big != nil:
		s.big.popMax(n, fn)
		return n
	}
	s.packed.descend(size-n, size, func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	s.packed.removeRange(size-n, size)
	return n
}

func (s *Set) clip(lo, hi int) (int, int) {
	if n := s.Len(); hi > n {
		hi = n
	}
	return max(lo, 0), hi
}
