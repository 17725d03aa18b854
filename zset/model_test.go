package zset

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"
)

// harness runs a set beside the model and compares after each step.
type harness struct {
	t     testing.TB
	set   *Set
	model model
	lim   Limits
	large bool // from the start, however few members
	every int  // full comparison each so many steps
	steps int
	did   map[string]int // how often something really happened

	beside bool   // a small set is in memory that is not its own
	home   []byte // that memory
}

func newHarness(t testing.TB, lim Limits, large bool, every int) *harness {
	h := &harness{t: t, lim: lim, large: large, every: every, did: map[string]int{}}
	h.reset()
	return h
}

// reset starts with an empty set.
func (h *harness) reset() {
	h.set, h.model = New(0, 0, h.lim), nil
	if h.large {
		h.set.unpack()
	}
	if h.beside {
		h.set.Begin(h.lim.Room)
	}
}

// bring moves a small set back into memory that is not its own.
func (h *harness) bring() {
	h.t.Helper()
	b, ok := h.set.Plain()
	if !ok {
		return
	}
	if h.home != nil && h.set.In(h.home) {
		h.did["stayed"]++
	} else {
		h.home = append(make([]byte, 0, len(b)+h.steps%40), b...)
		h.home = h.home[:cap(h.home)]
		h.did["moved"]++
	}
	if h.set = new(Set); PlainLen(h.home) != len(h.model) {
		h.fatalf("%d in plain bytes, model %d", PlainLen(h.home), len(h.model))
	}
	h.set.Over(h.home)
}

func (h *harness) fatalf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("step %d, %d members, %s: %s", h.steps, len(h.model), h.set.Encoding(), fmt.Sprintf(format, args...))
}

func (h *harness) compare() {
	h.t.Helper()
	h.steps++
	if h.beside {
		h.bring()
	}
	if h.set.big != nil {
		h.did["large"]++
	}
	if h.set.Len() != len(h.model) {
		h.fatalf("Len %d, model %d", h.set.Len(), len(h.model))
	}
	if h.steps%h.every != 0 {
		return
	}
	if err := h.set.check(); err != nil {
		h.fatalf("check: %v", err)
	}
	h.walk(0, len(h.model))
}

// walk compares a range of ranks, in both directions.
func (h *harness) walk(lo, hi int) {
	h.t.Helper()
	i := max(lo, 0)
	visit := func(member []byte, score float64) bool {
		if i < 0 || i >= len(h.model) || string(member) != h.model[i].member || score != h.model[i].score {
			h.fatalf("rank %d is %q %v, model %v", i, member, score, h.model[max(0, min(i, len(h.model)-1))])
		}
		return true
	}
	h.set.Ascend(lo, hi, func(m []byte, s float64) bool { visit(m, s); i++; return true })
	if want := max(max(lo, 0), min(hi, len(h.model))); i != want {
		h.fatalf("Ascend(%d, %d) ended at %d", lo, hi, i)
	}
	i = min(hi, len(h.model)) - 1
	h.set.Descend(lo, hi, func(m []byte, s float64) bool { visit(m, s); i--; return true })
	if want := min(max(lo, 0), max(min(hi, len(h.model)), 0)) - 1; lo < hi && i != want {
		h.fatalf("Descend(%d, %d) ended at %d, want %d", lo, hi, i, want)
	}
}

func (h *harness) add(member string, score float64, flags Flags) {
	h.t.Helper()
	outcome, got := h.set.Add([]byte(member), score, flags, h.lim)
	wantOutcome, want := h.model.add(member, score, flags)
	if outcome != wantOutcome || got != want {
		h.fatalf("Add(%q, %v, %b) is %v %v, model %v %v", member, score, flags, outcome, got, wantOutcome, want)
	}
	h.did[fmt.Sprint("add", outcome)]++
	if len(h.model) > h.lim.MaxPacked && h.set.Encoding() == "listpack" {
		h.fatalf("listpack")
	}
}

func (h *harness) remove(member string) {
	h.t.Helper()
	got, want := h.set.Remove([]byte(member)), h.model.remove(member)
	if got != want {
		h.fatalf("Remove(%q) is %v", member, got)
	}
	h.did[fmt.Sprint("remove", got)]++
}

func (h *harness) lookup(member string) {
	h.t.Helper()
	at := h.model.find(member)
	score, ok := h.set.Score([]byte(member))
	rank, score2, ok2 := h.set.Rank([]byte(member))
	if ok != (at >= 0) || ok2 != ok || ok && (score != h.model[at].score || score2 != score || rank != at) {
		h.fatalf("Score and Rank of %q: %v %v, %v %v %v, model %d", member, score, ok, rank, score2, ok2, at)
	}
	h.did[fmt.Sprint("lookup", ok)]++
}

func (h *harness) scoreRange(from, to ScoreBound) (lo, hi int) {
	h.t.Helper()
	lo, hi = h.set.ScoreRange(from, to)
	n := 0
	for i, e := range h.model {
		inside := (e.score > from.Score || e.score == from.Score && !from.Exclusive) &&
			(e.score < to.Score || e.score == to.Score && !to.Exclusive)
		if inside {
			n++
		}
		if inside != (lo <= i && i < hi) {
			h.fatalf("ScoreRange(%v, %v) is %d, %d; rank %d has %v", from, to, lo, hi, i, e)
		}
	}
	if hi-lo != n {
		h.fatalf("ScoreRange(%v, %v) is %d, %d; %d inside", from, to, lo, hi, n)
	}
	if n > 0 {
		h.did["scoreRange"]++
	}
	return lo, hi
}

// lexRange compares if all scores are equal.
func (h *harness) lexRange(from, to LexBound) (lo, hi int) {
	h.t.Helper()
	lo, hi = h.set.LexRange(from, to, false)
	if rlo, rhi := h.set.LexRange(from, to, true); rhi-rlo != hi-lo || lo < hi && (rlo != lo || rhi != hi) {
		h.fatalf("LexRange(%v, %v) is %d, %d; reverse %d, %d", from, to, lo, hi, rlo, rhi)
	}
	n := 0
	for i, e := range h.model {
		inside := from.Kind != LexMax && to.Kind != LexMin &&
			(from.Kind == LexMin || e.member > string(from.Member) || from.Kind == LexInclusive && e.member == string(from.Member)) &&
			(to.Kind == LexMax || e.member < string(to.Member) || to.Kind == LexInclusive && e.member == string(to.Member))
		if inside {
			n++
		}
		if inside != (lo <= i && i < hi) {
			h.fatalf("LexRange(%v, %v) is %d, %d; rank %d has %q", from, to, lo, hi, i, e.member)
		}
	}
	if n > 0 {
		h.did["lexRange"]++
	}
	return lo, hi
}

func (h *harness) removeRange(lo, hi int) {
	h.t.Helper()
	want := max(0, min(hi, len(h.model))-max(lo, 0))
	if got := h.set.RemoveRange(lo, hi); got != want {
		h.fatalf("RemoveRange(%d, %d) is %d", lo, hi, got)
	}
	if want > 0 {
		h.model.cut(max(lo, 0), min(hi, len(h.model)))
		h.did["removeRange"]++
	}
}

func (h *harness) pop(n int, highest bool) {
	h.t.Helper()
	var got []entry
	take := func(member []byte, score float64) { got = append(got, entry{string(member), score}) }
	want := min(max(n, 0), len(h.model))
	var k int
	if highest {
		k = h.set.PopMax(n, take)
	} else {
		k = h.set.PopMin(n, take)
	}
	if k != want || len(got) != want {
		h.fatalf("pop of %d gave %d, %v", n, k, got)
	}
	for _, e := range got {
		at := 0
		if highest {
			at = len(h.model) - 1
		}
		if e != h.model[at] {
			h.fatalf("popped %v, model %v", e, h.model[at])
		}
		h.model.cut(at, at+1)
		h.did["pop"]++
	}
}

// copyAndPack checks Clone and Pack, which must leave the original alone.
func (h *harness) copyAndPack() {
	h.t.Helper()
	original := h.set
	h.set = original.Clone()
	h.set.Pack(h.lim)
	packable := len(h.model) <= h.lim.MaxPacked
	for _, e := range h.model {
		packable = packable && len(e.member) <= h.lim.MaxPackedBytes
	}
	if packable && h.set.Encoding() != "listpack" || !packable && h.set.Encoding() != original.Encoding() {
		h.fatalf("Pack gave %s", h.set.Encoding())
	}
	if err := h.set.check(); err != nil {
		h.fatalf("check of clone: %v", err)
	}
	h.walk(0, len(h.model))
	h.set.RemoveRange(0, h.set.Len()/2)
	h.set = original
	h.did["clone "+original.Encoding()]++
}

func TestAgainstModel(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	forms := []struct {
		name   string
		lim    Limits
		large  bool
		values int // how many different members
		steps  int
		every  int
		must   []string
	}{
		{"packed", Limits{1 << 20, 1 << 20, nil}, false, 60, 12000, 1, []string{"clone listpack", "lexRange"}},
		{"large", Limits{0, 0, nil}, true, 200, 4000, 3, []string{"clone skiplist", "lexRange"}},
		{"growing", Limits{70, 64, nil}, false, 300, 10000, 4, []string{"clone listpack", "clone skiplist", "large"}},
		{"long members", Limits{8, 3000, nil}, false, 100, 2000, 2, []string{"large"}},
		{"many", Limits{128, 64, nil}, false, 6000, 15000, 1500, []string{"scan in parts", "large"}},
		{"beside a key", Limits{70, 64, make([]byte, 600)}, false, 300, 20000, 1, []string{"stayed", "moved", "clone listpack", "large"}},
	}
	for i, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewSource(seed + int64(i)))
			h := newHarness(t, f.lim, f.large, f.every)
			h.beside = f.lim.Room != nil
			for h.steps < f.steps {
				h.random(r, f.values, f.name)
				h.compare()
			}
			for _, what := range append(f.must, "add1", "add2", "add3", "add4", "removetrue", "removefalse", "lookuptrue", "lookupfalse", "scoreRange", "removeRange", "pop", "scan") {
				if h.did[what] == 0 {
					t.Errorf("%q never happened: %v", what, h.did)
				}
			}
		})
	}
}

func (h *harness) random(r *rand.Rand, values int, name string) {
	n := r.Intn(values)
	member := fmt.Sprintf("m%d", n)
	switch {
	case name == "long members":
		member += string(bytes.Repeat([]byte{'x'}, []int{0, 100, 190, 200, 400, 1015, 1030, 2500}[n%8]))
	case n%9 == 0:
		member += "\x00\xff"
	case n == 1:
		member = ""
	}
	score := float64(r.Intn(20) - 10)
	switch r.Intn(40) {
	case 0:
		score = math.Inf(1)
	case 1:
		score = math.Inf(-1)
	case 2:
		score = math.Copysign(0, -1)
	case 3, 4, 5:
		score = r.NormFloat64() * 1e9
	}
	bound := func() ScoreBound {
		b := ScoreBound{float64(r.Intn(24) - 12), r.Intn(2) == 0}
		if r.Intn(8) == 0 {
			b.Score = math.Inf(r.Intn(2)*2 - 1)
		}
		return b
	}
	// A set fills for some hundreds of steps, then empties.
	if h.steps/(values*3)%3 == 2 && r.Intn(3) > 0 {
		h.remove(member)
		return
	}
	switch k := r.Intn(1000); {
	case k < 500:
		h.add(member, score, 0)
	case k < 510:
		h.add(member, math.Inf(1), 0)
		h.add(member, math.Inf(-1), Incr) // no number
	case k < 600:
		h.add(member, score, Flags(r.Intn(32)))
	case k < 700:
		h.remove(member)
	case k < 850:
		h.lookup(member)
	case k < 880:
		h.scoreRange(bound(), bound())
	case k < 884:
		h.removeRange(h.scoreRange(bound(), ScoreBound{score, r.Intn(2) == 0}))
	case k < 900:
		lo := r.Intn(len(h.model) + 2)
		h.removeRange(lo-1, lo+r.Intn(5))
	case k < 930:
		h.pop(r.Intn(4), r.Intn(2) == 0)
	case k < 950:
		lo := r.Intn(len(h.model)+2) - 1
		h.walk(lo, lo+r.Intn(12)-2)
	case k < 970:
		if name != "many" || k < 951 {
			h.scanAll(r)
		}
	case k < 976:
		if name != "many" || k < 971 {
			h.copyAndPack()
		}
	case k < 979:
		if name != "many" {
			h.equalScores(r)
		}
	case k < 981:
		if name != "many" {
			h.reset()
			if r.Intn(2) == 0 {
				h.set.Prepare(r.Intn(2*h.lim.MaxPacked+1), 0, h.lim)
			}
		}
	}
}

// equalScores gives all members one score and tries ranges by member.
func (h *harness) equalScores(r *rand.Rand) {
	for _, e := range append(model(nil), h.model...) {
		h.add(e.member, 7, 0)
	}
	bound := func() LexBound {
		return LexBound{LexKind(r.Intn(4)), []byte(fmt.Sprintf("m%d", r.Intn(100)))}
	}
	for range 50 {
		h.lexRange(bound(), bound())
	}
	h.removeRange(h.lexRange(LexBound{LexExclusive, []byte("m5")}, LexBound{LexInclusive, []byte("m6")}))
}

// scanAll scans in parts, with writes in between, and checks that every member that was there throughout came exactly
// once.
func (h *harness) scanAll(r *rand.Rand) {
	h.t.Helper()
	stay := map[string]int{}
	scores := map[string]float64{}
	for _, e := range h.model {
		stay[e.member], scores[e.member] = 0, e.score
	}
	cursor, calls := uint64(0), 0
	count := 1 + r.Intn(30)
	for {
		got := 0
		next := h.set.Scan(cursor, count, func(member []byte, score float64) {
			got++
			if n, ok := stay[string(member)]; ok {
				stay[string(member)] = n + 1
				if score != scores[string(member)] {
					h.fatalf("Scan gave %q %v", member, score)
				}
			} else if h.model.find(string(member)) < 0 {
				h.fatalf("Scan gave %q, which is not there", member)
			}
		})
		if next != 0 && (next <= cursor || next >= 1<<cursorBits || got < count || got > 4*count+groupSlots) {
			h.fatalf("Scan(%d, %d) gave %d and %d", cursor, count, got, next)
		}
		if cursor, calls = next, calls+1; cursor == 0 {
			break
		}
		for range r.Intn(60) {
			extra := fmt.Sprintf("scan%d", r.Intn(1000))
			if r.Intn(3) == 0 {
				h.remove(extra)
			} else {
				h.add(extra, float64(r.Intn(10)), 0)
			}
		}
		if len(h.model) > 0 && r.Intn(2) == 0 {
			e := h.model[r.Intn(len(h.model))]
			delete(stay, e.member)
			h.remove(e.member)
		}
	}
	for member, n := range stay {
		if n != 1 {
			h.fatalf("Scan gave %q %d times", member, n)
		}
	}
	if calls > 1 {
		h.did["scan in parts"]++
	}
	h.did["scan"]++
	for _, e := range append(model(nil), h.model...) {
		if len(e.member) > 4 && e.member[:4] == "scan" {
			h.remove(e.member)
		}
	}
}
