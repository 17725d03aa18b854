package generic

// The order of SORT. Elements that compare as equal – by the same text, or by none – are in the order in which Redis's sort
// leaves them. Redis sorts all elements with the C library's merge sort, which is stable, and a part that BY and LIMIT select
// with a quicksort (partialsort.Sort). So this does the same.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/partialsort"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

// item is an element to be sorted and what it is sorted by.
type item struct {
	element []byte
	score   float64
	by      []byte // with ALPHA
	has     bool   // with ALPHA and BY: there is such a text
}

// order sorts the elements as far as needed to put those from from up to to in place. It reports false if an element must be
// a number and is not.
func (s *sorting) order(c *command.Ctx, items []item, from, to int) bool {
	ok := true
	by := finder{c: c}
	var kept room
	for i := range items {
		it := &items[i]
		value := it.element
		if s.isBy {
			var found bool
			if value, found = by.find(&s.by, it.element); !found {
				continue
			}
		}
		if !s.alpha {
			var isNumber bool
			it.score, isNumber = number.ParseBound(value)
			ok = ok && isNumber && it.score == it.score
			continue
		}
		if s.isBy {
			it.by, it.has = kept.copy(s.text(value)), true
		} else {
			it.by = s.text(it.element)
		}
	}
	compare := s.comparison()
	if s.isBy && (from != 0 || to != len(items)) {
		partialsort.Sort(items, compare, from, to)
	} else {
		partialsort.Stable(items, compare)
	}
	return ok
}

// text is the part of a text that ALPHA compares. Unless the result is stored, Redis compares as C does, up to a zero byte.
func (s *sorting) text(b []byte) []byte {
	if s.store != nil {
		return b
	}
	return command.Text(b)
}

func (s *sorting) comparison() func(a, b *item) int {
	var compare func(a, b *item) int
	switch {
	case !s.alpha:
		compare = func(a, b *item) int {
			switch {
			case a.score > b.score:
				return 1
			case a.score < b.score:
				return -1
			}
			return bytes.Compare(a.element, b.element)
		}
	case s.isBy:
		compare = func(a, b *item) int {
			switch {
			case a.has && b.has:
				return bytes.Compare(a.by, b.by)
			case a.has:
				return 1
			case b.has:
				return -1
			}
			return 0
		}
	default:
		compare = func(a, b *item) int { return bytes.Compare(a.by, b.by) }
	}
	if s.desc {
		return func(a, b *item) int { return -compare(a, b) }
	}
	return compare
}
