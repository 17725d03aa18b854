package sortedset

// A window of a sorted set: by rank, score or name. Each becomes an interval of ranks.

import (
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

// sortBy is the kind of a window's ends.
type sortBy uint8

const (
	byRank sortBy = iota
	byScore
	byLex
)

type window struct {
	by                   sortBy
	start, stop          int64
	minScore, maxScore   zset.ScoreBound
	minMember, maxMember zset.LexBound
}

// parseWindow reads the ends of a window. It replies the error if there is one.
func parseWindow(c *command.Ctx, by sortBy, from, to []byte) (w window, ok bool) {
	w.by = by
	switch by {
	case byRank:
		a := command.ArgsOf(from, to)
		w.start, w.stop = a.Int(), a.Int()
		return w, !a.Failed(c)
	case byScore:
		var ok1, ok2 bool
		w.minScore, ok1 = scoreBound(from)
		w.maxScore, ok2 = scoreBound(to)
		if !ok1 || !ok2 {
			c.Error(command.ErrMinMaxFloat)
			return w, false
		}
	default:
		var ok1, ok2 bool
		w.minMember, ok1 = lexBound(from)
		w.maxMember, ok2 = lexBound(to)
		if !ok1 || !ok2 {
			c.Error(command.ErrMinMaxLex)
			return w, false
		}
	}
	return w, true
}

func scoreBound(b []byte) (s zset.ScoreBound, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		s.Exclusive = true
		b = b[1:]
	}
	s.Score, ok = number.ParseBound(b)
	return s, ok && s.Score == s.Score
}

func lexBound(b []byte) (l zset.LexBound, ok bool) {
	if len(b) == 0 {
		return l, false
	}
	// Redis reads these two as C strings, which end at a zero byte.
	alone := len(b) == 1 || b[1] == 0
	switch b[0] {
	case '-':
		return zset.LexBound{Kind: zset.LexMin}, alone
	case '+':
		return zset.LexBound{Kind: zset.LexMax}, alone
	case '[':
		return zset.LexBound{Kind: zset.LexInclusive, Member: b[1:]}, true
	case '(':
		return zset.LexBound{Kind: zset.LexExclusive, Member: b[1:]}, true
	}
	return l, false
}

// ranks is the window as an interval [lo, hi) of ranks from the lowest score.
// A window by rank counts from the highest if reverse is set.
func (w *window) ranks(z *zset.Set, reverse bool) (lo, hi int) {
	switch w.by {
	case byScore:
		return z.ScoreRange(w.minScore, w.maxScore)
	case byLex:
		return z.LexRange(w.minMember, w.maxMember, reverse)
	}
	n := int64(z.Len())
	start, stop := w.start, w.stop
	if start < 0 {
		start = max(start+n, 0)
	}
	if stop < 0 {
		stop += n
	}
	stop = min(stop, n-1)
	if start > stop {
		return 0, 0
	}
	if reverse {
		start, stop = n-1-stop, n-1-start
	}
	return int(start), int(stop) + 1
}

// limited cuts an interval to count members after an offset, counted from the
// end where reverse is set. A negative count is no limit, a negative offset
// leaves nothing.
func limited(lo, hi int, offset, count int64, reverse bool) (int, int) {
	n := int64(hi - lo)
	if offset < 0 || offset >= n {
		return 0, 0
	}
	if count < 0 || count > n-offset {
		count = n - offset
	}
	if reverse {
		return hi - int(offset+count), hi - int(offset)
	}
	return lo + int(offset), lo + int(offset+count)
}
