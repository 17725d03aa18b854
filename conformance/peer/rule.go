// When two replies count as the same. The rule is equality, byte for byte; the looser rules here are for what Redis
// itself leaves open (the order of a hash table, a random pick) or what time changes (a TTL).

package peer

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Rule is how a reply is compared with the expected one. The zero Rule is equality.
type Rule struct {
	Unordered int     // elements in any order, taken in groups of this many (2: pairs in a flat array)
	Near      float64 // numbers may differ by this much
	AnyInt    bool    // any integer
	Shape     bool    // same kinds and lengths, other contents
	Any       bool    // anything but an error
	ErrorCode bool    // of an error, the first word only
}

// Exact says whether the rule is plain equality.
func (r Rule) Exact() bool { return r == Rule{} }

// Match says whether got passes for want.
func (r Rule) Match(want, got Value) bool {
	if want.Equal(got) {
		return true
	}
	switch {
	case r.ErrorCode && want.IsError() && got.IsError():
		return firstWord(want.Text) == firstWord(got.Text)
	case want.IsError() || got.IsError():
		return false
	case r.Any:
		return true
	case r.AnyInt:
		return got.Kind == ':' && want.Kind == ':'
	case r.Shape:
		return shape(want, got)
	case r.Unordered > 0:
		return slices.Equal(groups(want, r.Unordered), groups(got, r.Unordered)) && want.Kind == got.Kind
	case r.Near > 0:
		return near(want, got, r.Near)
	}
	return false
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

func shape(a, b Value) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Items {
		if !shape(a.Items[i], b.Items[i]) {
			return false
		}
	}
	return true
}

// groups are the elements of an aggregate, n at a time, in one canonical order. The pairs of a map stay pairs.
func groups(v Value, n int) []string {
	switch {
	case v.keyed():
		n = 2
	case len(v.Items) > 0 && brackets[v.Items[0].Kind] != [2]string{}:
		n = 1 // RESP3 has the pairs as arrays of their own
	}
	var out []string
	for i := 0; i < len(v.Items); i += n {
		var b strings.Builder
		for j := i; j < min(i+n, len(v.Items)); j++ {
			b.WriteString(v.Items[j].flat())
			b.WriteByte(' ')
		}
		out = append(out, b.String())
	}
	sort.Strings(out)
	return out
}

func near(a, b Value, delta float64) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Items {
		if !near(a.Items[i], b.Items[i], delta) {
			return false
		}
	}
	if a.Text == b.Text {
		return true
	}
	x, errX := strconv.ParseFloat(a.Text, 64)
	y, errY := strconv.ParseFloat(b.Text, 64)
	// A negative number means "no TTL" or "no key" and has no neighbours.
	return errX == nil && errY == nil && x >= 0 && y >= 0 && math.Abs(x-y) <= delta
}
