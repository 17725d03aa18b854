package zset

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"
)

// form is the encoding of a set, and its real form.
type form struct {
	name  string
	lim   Limits
	large bool
}

var forms = []form{
	{"listpack", DefaultLimits, false},
	{"packed skiplist", Limits{}, false},
	{"large skiplist", Limits{}, true},
	{"large listpack", Limits{1 << 30, 1 << 30, nil}, true}, // as when the limits are raised
}

func (f form) fill(pairs ...any) *Set {
	s := New(1, 1, f.lim)
	if f.large {
		s.unpack()
	}
	for i := 0; i < len(pairs); i += 2 {
		score, ok := pairs[i].(float64)
		if !ok {
			score = float64(pairs[i].(int))
		}
		s.Add([]byte(pairs[i+1].(string)), score, 0, f.lim)
	}
	return s
}

// eachForm runs a test on sets of each form, which must not differ.
func eachForm(t *testing.T, test func(t *testing.T, f form)) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			test(t, f)
			s := f.fill(1, "a")
			if (s.big != nil) != f.large || !strings.HasSuffix(f.name, s.Encoding()) {
				t.Errorf("%s, large %v", s.Encoding(), s.big != nil)
			}
		})
	}
}

// show prints ranks [lo, hi) as "score:member score:member".
func show(s *Set, lo, hi int) string {
	var out []string
	s.Ascend(lo, hi, func(member []byte, score float64) bool {
		out = append(out, fmt.Sprintf("%v:%s", score, member))
		return true
	})
	return strings.Join(out, " ")
}

func TestOrderIsByScoreThenBytes(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		s := f.fill(2, "b", 1, "z", 2, "a", 2, "B", 2, "ab", 2, "", math.Inf(1), "i", math.Inf(-1), "j", 2, "\xff")
		if got, want := show(s, 0, 99), "-Inf:j 1:z 2: 2:B 2:a 2:ab 2:b 2:\xff +Inf:i"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAddFlags(t *testing.T) {
	tests := []struct {
		flags   Flags
		member  string // "m" has 5, "new" is not there
		score   float64
		outcome Outcome
		after   float64
	}{
		{0, "m", 7, Updated, 7},
		{0, "m", 5, Same, 5},
		{0, "new", 7, Added, 7},
		{NX, "m", 7, Kept, 0},
		{NX, "new", 7, Added, 7},
		{XX, "m", 7, Updated, 7},
		{XX, "new", 7, Kept, 0},
		{GT, "m", 7, Updated, 7},
		{GT, "m", 5, Kept, 0},
		{GT, "m", 3, Kept, 0},
		{GT, "new", 3, Added, 3},
		{LT, "m", 7, Kept, 0},
		{LT, "m", 3, Updated, 3},
		{XX | GT, "new", 7, Kept, 0},
		{Incr, "m", 2, Updated, 7},
		{Incr, "m", 0, Same, 5},
		{Incr, "new", 2, Added, 2},
		{Incr | GT, "m", -2, Kept, 0},
		{Incr | LT, "m", -2, Updated, 3},
		{Incr | NX, "m", 2, Kept, 0},
		{Incr | XX, "new", 2, Kept, 0},
	}
	eachForm(t, func(t *testing.T, f form) {
		for _, test := range tests {
			s := f.fill(5, "m")
			outcome, after := s.Add([]byte(test.member), test.score, test.flags, f.lim)
			if outcome != test.outcome || after != test.after {
				t.Errorf("Add(%s, %v, %05b) is %v %v, want %v %v", test.member, test.score, test.flags, outcome, after, test.outcome, test.after)
			}
		}
		s := f.fill(math.Inf(1), "m")
		if outcome, _ := s.Add([]byte("m"), math.Inf(-1), Incr, f.lim); outcome != NaN {
			t.Errorf("inf - inf is %v", outcome)
		}
		if score, _ := s.Score([]byte("m")); !math.IsInf(score, 1) {
			t.Errorf("inf - inf left %v", score)
		}
	})
}

// Redis's listpack writes a score without fraction as an integer, so -0 becomes 0; its skiplist keeps the sign. Neither
// treats 0 and -0 as different.
func TestNegativeZero(t *testing.T) {
	negative := math.Copysign(0, -1)
	eachForm(t, func(t *testing.T, f form) {
		s := f.fill(negative, "b", 0, "a", 5, "c")
		kept := s.Encoding() == "skiplist"
		if score, _ := s.Score([]byte("b")); math.Signbit(score) != kept {
			t.Errorf("%v for -0", score)
		}
		if got := show(s, 0, 1); got != "0:a" {
			t.Errorf("first is %s", got)
		}
		if outcome, _ := s.Add([]byte("a"), negative, 0, f.lim); outcome != Same {
			t.Errorf("0 to -0 is %v", outcome)
		}
		if outcome, score := s.Add([]byte("c"), negative, 0, f.lim); outcome != Updated || !math.Signbit(score) {
			t.Errorf("5 to -0 is %v %v", outcome, score)
		}
		if score, _ := s.Score([]byte("c")); math.Signbit(score) != kept {
			t.Errorf("%v for -0 after an update", score)
		}
		s.Pack(DefaultLimits)
		if score, _ := s.Score([]byte("b")); math.Signbit(score) || s.Encoding() != "listpack" {
			t.Errorf("%s gives %v for -0", s.Encoding(), score)
		}
	})
}

func TestEncodingLimits(t *testing.T) {
	f := form{lim: Limits{MaxPacked: 3, MaxPackedBytes: 4}}
	lim, large := f.lim, form{}
	tests := []struct {
		name string
		make func() *Set
		want string
	}{
		{"new", func() *Set { return New(3, 4, lim) }, "listpack"},
		{"many announced", func() *Set { return New(4, 4, lim) }, "skiplist"},
		{"long announced", func() *Set { return New(1, 5, lim) }, "skiplist"},
		{"at the limits", func() *Set { return f.fill(1, "a", 1, "b", 1, "four") }, "listpack"},
		{"one more", func() *Set { return f.fill(1, "a", 1, "b", 1, "c", 1, "d") }, "skiplist"},
		{"update is not one more", func() *Set { return f.fill(1, "a", 1, "b", 1, "c", 2, "c") }, "listpack"},
		{"long", func() *Set { return f.fill(1, "five5") }, "skiplist"},
		{"never back", func() *Set {
			s := f.fill(1, "five5")
			s.Remove([]byte("five5"))
			s.Add([]byte("a"), 1, 0, lim)
			return s
		}, "skiplist"},
		{"announced later", func() *Set { s := f.fill(1, "a"); s.Prepare(4, 0, lim); return s }, "skiplist"},
		{"few announced later", func() *Set { s := f.fill(1, "a"); s.Prepare(3, 0, lim); return s }, "listpack"},
		{"STORE of few", func() *Set { s := large.fill(1, "a"); s.Pack(lim); return s }, "listpack"},
		{"STORE of many", func() *Set { s := large.fill(1, "a", 1, "b", 1, "c", 1, "d"); s.Pack(lim); return s }, "skiplist"},
		{"STORE of long", func() *Set { s := large.fill(1, "five5"); s.Pack(lim); return s }, "skiplist"},
	}
	for _, test := range tests {
		if got := test.make().Encoding(); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestLexRange(t *testing.T) {
	parse := func(b string) LexBound {
		kinds := map[byte]LexKind{'-': LexMin, '+': LexMax, '[': LexInclusive, '(': LexExclusive}
		return LexBound{kinds[b[0]], []byte(b[1:])}
	}
	tests := []struct{ from, to, want string }{
		{"-", "+", "a b c d"}, {"[b", "[c", "b c"}, {"(b", "[c", "c"}, {"[b", "(c", "b"}, {"(b", "(c", ""},
		{"-", "(b", "a"}, {"(c", "+", "d"}, {"[c", "[b", ""}, {"+", "-", ""}, {"+", "+", ""}, {"-", "-", ""},
		{"[b", "[b", "b"}, {"(b", "[b", ""}, {"[aa", "[bb", "b"}, {"[x", "+", ""}, {"-", "[A", ""}, {"[", "+", "a b c d"}, {"-", "[", ""},
	}
	eachForm(t, func(t *testing.T, f form) {
		s := f.fill(0, "a", 0, "b", 0, "c", 0, "d")
		for _, test := range tests {
			for _, reverse := range []bool{false, true} {
				lo, hi := s.LexRange(parse(test.from), parse(test.to), reverse)
				if got := strings.ReplaceAll(show(s, lo, hi), "0:", ""); got != test.want {
					t.Errorf("%s %s (reverse %v): %q, want %q", test.from, test.to, reverse, got, test.want)
				}
			}
		}
	})
}

// If scores differ, Redis promises nothing. But its listpack always answers the same, as seen in 8.0.6: it walks from
// one end of the set.
func TestLexRangeOfMixedScoresInListpack(t *testing.T) {
	s := forms[0].fill(1, "c", 2, "a", 3, "e", 4, "b", 5, "d")
	from, to := LexBound{LexInclusive, []byte("b")}, LexBound{LexInclusive, []byte("c")}
	if lo, hi := s.LexRange(from, to, false); show(s, lo, hi) != "1:c 2:a" {
		t.Errorf("forward: %s", show(s, lo, hi))
	}
	if lo, hi := s.LexRange(from, to, true); show(s, lo, hi) != "3:e 4:b" {
		t.Errorf("reverse: %s", show(s, lo, hi))
	}
}

func TestRangesOutsideTheSet(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		s := f.fill(1, "a", 2, "b")
		for _, r := range []struct {
			lo, hi int
			want   string
		}{{-5, 1, "1:a"}, {1, 99, "2:b"}, {2, 1, ""}, {5, 9, ""}, {-5, -1, ""}, {-3, 3, "1:a 2:b"}} {
			if got := show(s, r.lo, r.hi); got != r.want {
				t.Errorf("[%d, %d) is %q, want %q", r.lo, r.hi, got, r.want)
			}
		}
		if _, _, ok := s.ByRank(2); ok {
			t.Error("ByRank(2) of 2")
		}
		if _, _, ok := s.ByRank(-1); ok {
			t.Error("ByRank(-1)")
		}
		s.PopMin(9, func([]byte, float64) {})
		if _, _, ok := s.Min(); ok || s.Len() != 0 {
			t.Error("Min of an empty set")
		}
		if _, _, ok := s.Max(); ok {
			t.Error("Max of an empty set")
		}
	})
}

// A set that has shrunk releases its memory.
func TestMemoryShrinks(t *testing.T) {
	const n = 100_000
	s := &Set{}
	member := func(i int) []byte { return []byte(fmt.Sprintf("member:%07d", i)) }
	for i := range n {
		s.Add(member(i), float64(i*7919%n), 0, DefaultLimits)
	}
	full := s.MemoryUsage()
	if full > 80*n {
		t.Errorf("%d bytes a member", full/n)
	}
	for i := range n - 100 {
		s.Remove(member(i))
	}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	if left := s.MemoryUsage(); left > 120_000 {
		t.Errorf("%d bytes for 100 members, %d before", left, full)
	}
	for i := n - 100; i < n; i++ {
		if _, ok := s.Score(member(i)); !ok {
			t.Fatalf("%s is lost", member(i))
		}
	}
}

func TestPackedMemoryShrinks(t *testing.T) {
	s := &Set{}
	for i := range 100 {
		s.Add([]byte(fmt.Sprintf("member%d", i)), 1, 0, DefaultLimits)
	}
	s.RemoveRange(2, 100)
	if s.MemoryUsage() > 128 {
		t.Errorf("%d bytes for 2 members", s.MemoryUsage())
	}
}

// Entries that are added in rising order, such as times, fill the leaves. Entries that are then added in falling order
// after a full leaf must not get leaves of one entry.
func TestLeavesAreFilled(t *testing.T) {
	const rising, falling = 100 * fanout, 900
	s := &Set{}
	for i := range rising {
		s.Add([]byte(fmt.Sprint(i)), float64(1000*i), 0, DefaultLimits)
	}
	bytes := s.big.order.root.memoryUsage()
	if bytes > 14*rising {
		t.Errorf("%d bytes an entry", bytes/rising)
	}
	for i := range falling {
		s.Add([]byte(fmt.Sprint("f", i)), float64(1000*fanout-1-i), 0, DefaultLimits)
	}
	if bytes = s.big.order.root.memoryUsage() - bytes; bytes > 40*falling {
		t.Errorf("%d bytes an entry added in falling order", bytes/falling)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// A scan of a segment passes each entry once, also those for which the last groups had no room, so that they are in the
// first ones.
func TestSegmentScanWraps(t *testing.T) {
	g := newSegment(0)
	var hashes []uint64
	for i := range uint64(2*groupSlots + 3) {
		hashes = append(hashes, math.MaxUint64-i, i)
	}
	for i, h := range hashes {
		g.put(h, ref(i+1))
	}
	got := map[ref]int{}
	g.scan(0, math.MaxUint64, func(r ref) { got[r]++ })
	for i, h := range hashes {
		if got[ref(i+1)] != 1 {
			t.Errorf("hash %x came %d times", h, got[ref(i+1)])
		}
	}
	clear(got)
	g.scan(math.MaxUint64-100, math.MaxUint64, func(r ref) { got[r]++ })
	for i, h := range hashes {
		if n := got[ref(i+1)]; n > 1 || n == 0 && h > math.MaxUint64-100 {
			t.Errorf("hash %x came %d times from the end", h, n)
		}
	}
}

// Members of all lengths that are added and removed do not fragment the memory.
func TestMemoryUnderChurn(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	s := &Set{}
	var members []string
	bytes, evacuated := 0, 0
	for step := range 60_000 {
		length := 8 + r.Intn(20)
		if step/20_000 == 1 {
			length = 100 + r.Intn(100)
		}
		m := fmt.Sprintf("%0*d", length, step)
		s.Add([]byte(m), r.Float64(), 0, DefaultLimits)
		members = append(members, m)
		bytes += len(m)
		for len(members) > 5000 {
			i := r.Intn(len(members))
			chunks := len(s.big.arena.spare)
			if !s.Remove([]byte(members[i])) {
				t.Fatalf("step %d: %q is lost", step, members[i])
			}
			if len(s.big.arena.spare) > chunks {
				evacuated++
			}
			bytes -= len(members[i])
			members[i] = members[len(members)-1]
			members = members[:len(members)-1]
			// Three times the entries, and the rest of the structure.
			if limit := 3*(bytes+12*len(members)) + 50*len(members) + 8*chunkBytes; s.MemoryUsage() > limit {
				t.Fatalf("step %d: %d bytes for %d members of %d bytes together", step, s.MemoryUsage(), len(members), bytes)
			}
		}
	}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	if evacuated == 0 {
		t.Error("no chunk was ever given back")
	}
}
