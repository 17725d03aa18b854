package generic

// The order of SORT. Where it compares two elements as equal – by the same
// text, or by none – their order follows from how Redis sorts: all elements
// with the C library's merge sort, which is stable, and those of which BY and
// LIMIT select a part with Bentley's and McIlroy's quicksort ("Engineering a
// sort function", 1993) that leaves out the parts nobody asked for. So this
// does the same.

import (
	"bytes"
	"slices"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/resp/number"
)

// item is an element to be sorted and what it is sorted by.
type item struct {
	element []byte
	score   float64
	by      []byte // with ALPHA and BY
	has     bool   // there is such a text
}

// order sorts the elements, as far as those from from up to to are concerned.
// It reports false if some are no numbers where they must be.
func (s *sorting) order(c *command.Ctx, items []item, from, to int) bool {
	ok := true
	var scratch packed.Scratch
	for i := range items {
		it := &items[i]
		value := it.element
		if s.by != nil {
			var found bool
			if value, found = byPattern(c, s.by, it.element, &scratch); !found {
				continue
			}
			if s.alpha {
				it.by, it.has = bytes.Clone(value), true
			}
		}
		if !s.alpha {
			var isNumber bool
			it.score, isNumber = number.ParseBound(value)
			ok = ok && isNumber && it.score == it.score
		}
	}
	compare := s.comparison()
	if s.by != nil && (from != 0 || to != len(items)) {
		partialSort(items, compare, from, to)
	} else {
		slices.SortStableFunc(items, compare)
	}
	return ok
}

func (s *sorting) comparison() func(a, b item) int {
	var compare func(a, b item) int
	// Unless the result is stored Redis compares as C does, up to a zero byte.
	cut := text
	if s.store != nil {
		cut = func(b []byte) []byte { return b }
	}
	switch {
	case !s.alpha:
		compare = func(a, b item) int {
			switch {
			case a.score > b.score:
				return 1
			case a.score < b.score:
				return -1
			}
			return bytes.Compare(a.element, b.element)
		}
	case s.by != nil:
		compare = func(a, b item) int {
			switch {
			case a.has && b.has:
				return bytes.Compare(cut(a.by), cut(b.by))
			case a.has:
				return 1
			case b.has:
				return -1
			}
			return 0
		}
	default:
		compare = func(a, b item) int { return bytes.Compare(cut(a.element), cut(b.element)) }
	}
	if s.desc {
		return func(a, b item) int { return -compare(a, b) }
	}
	return compare
}

// Below how many elements partialSort inserts, and above how many it takes the
// pivot from nine elements instead of three.
const (
	insertBelow = 7
	nineAbove   = 40
)

// partialSort puts those elements in place that belong from index from up to
// to in the order; the others end up on the right side of them.
func partialSort(v []item, compare func(a, b item) int, from, to int) {
	base := 0 // of v in the whole
	for {
		n := len(v)
		if n < insertBelow {
			for i := 1; i < n; i++ {
				for j := i; j > 0 && compare(v[j-1], v[j]) > 0; j-- {
					v[j-1], v[j] = v[j], v[j-1]
				}
			}
			return
		}
		p := pivot(v, compare)
		v[0], v[p] = v[p], v[0]
		// Equal to the pivot, which is v[0], are v[:a] and v[d+1:]; between them
		// are the smaller ones, v[a:b], and the larger ones, v[c+1:d+1].
		a, b, c, d := 1, 1, n-1, n-1
		for {
			for ; b <= c; b++ {
				r := compare(v[b], v[0])
				if r > 0 {
					break
				}
				if r == 0 {
					v[a], v[b] = v[b], v[a]
					a++
				}
			}
			for ; b <= c; c-- {
				r := compare(v[c], v[0])
				if r < 0 {
					break
				}
				if r == 0 {
					v[c], v[d] = v[d], v[c]
					d--
				}
			}
			if b > c {
				break
			}
			v[b], v[c] = v[c], v[b]
			b++
			c--
		}
		// The equal ones go to the middle.
		swapRanges(v, 0, b-min(a, b-a), min(a, b-a))
		swapRanges(v, b, n-min(d-c, n-1-d), min(d-c, n-1-d))
		smaller, larger := b-a, d-c
		if smaller > 1 && from < base+smaller && to > base {
			partialSort(v[:smaller], compare, from-base, to-base)
		}
		start := base + n - larger
		if larger <= 1 || to <= start || from >= base+n {
			return
		}
		v, base = v[n-larger:], start
	}
}

func swapRanges(v []item, i, j, n int) {
	for k := range n {
		v[i+k], v[j+k] = v[j+k], v[i+k]
	}
}

// pivot is the index of the element to divide by.
func pivot(v []item, compare func(a, b item) int) int {
	n := len(v)
	lo, mid, hi := 0, n/2, n-1
	if n == insertBelow {
		return mid
	}
	if n > nineAbove {
		d := n / 8
		lo = median(v, compare, lo, lo+d, lo+2*d)
		mid = median(v, compare, mid-d, mid, mid+d)
		hi = median(v, compare, hi-2*d, hi-d, hi)
	}
	return median(v, compare, lo, mid, hi)
}

// median is which of the three is neither the smallest nor the largest.
func median(v []item, compare func(a, b item) int, i, j, k int) int {
	if compare(v[i], v[j]) < 0 {
		switch {
		case compare(v[j], v[k]) < 0:
			return j
		case compare(v[i], v[k]) < 0:
			return k
		}
		return i
	}
	switch {
	case compare(v[j], v[k]) > 0:
		return j
	case compare(v[i], v[k]) < 0:
		return i
	}
	return k
}
