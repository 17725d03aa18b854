package zset

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"
)

// TestBuilder compares a Builder's set with one to which the same members are added one by one, and then changes both.
func TestBuilder(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewSource(seed))
	scores := []float64{0, math.Copysign(0, -1), 1, 2, 3, math.Inf(1), math.Inf(-1), 0.5}
	second := func(_, score float64) float64 { return score }
	updated, added, small := 0, 0, 0
	for _, members := range []int{1, 10, packedEntriesMax / 2, packedEntriesMax, packedEntriesMax + 1, 300, 6889, 6890, 20000} {
		name := func(i int) []byte { return fmt.Appendf(nil, "%0*d", 1+i%7*i%300, i) }
		b, want := NewBuilder(members), New(members, 0, Limits{})
		add := func(i int) {
			score := scores[rnd.Intn(len(scores))]
			if rnd.Intn(2) == 0 {
				score = float64(rnd.Intn(1000))
			}
			b.Add(name(i), score, second)
			if want.Remove(name(i)) { // Add would keep a zero's sign
				updated++
			}
			want.Add(name(i), score, 0, Limits{})
		}
		for i := range members {
			add(i)
		}
		for range members {
			add(rnd.Intn(2 * members))
		}
		got := b.Set()
		same := func() {
			t.Helper()
			if err := got.check(); err != nil {
				t.Fatalf("%d members: %v", members, err)
			}
			if got.Len() != want.Len() || got.Encoding() != want.Encoding() {
				t.Fatalf("%d members as %s, want %d as %s", got.Len(), got.Encoding(), want.Len(), want.Encoding())
			}
			rank := 0
			got.Ascend(0, got.Len(), func(member []byte, score float64) bool {
				m, s, _ := want.ByRank(rank)
				if string(m) != string(member) || math.Float64bits(s) != math.Float64bits(score) {
					t.Fatalf("rank %d of %d is %q %v, want %q %v", rank, got.Len(), member, score, m, s)
				}
				rank++
				return true
			})
		}
		same()
		added += want.Len() - members
		if got.big == nil {
			small++
		}
		for i := range members {
			got.Remove(name(i))
			want.Remove(name(i))
			got.Add(name(2*i), float64(i), 0, Limits{})
			want.Add(name(2*i), float64(i), 0, Limits{})
		}
		same()
	}
	if updated == 0 || added == 0 || small < 2 {
		t.Fatalf("%d updated, %d added, %d small: the test did no work", updated, added, small)
	}
}

// BenchmarkUnion makes the sum of two sets of 1000 members, of which all or half are in both.
func BenchmarkUnion(b *testing.B) {
	make := func(from int) *Set {
		s := New(1000, 0, Limits{})
		for i := range 1000 {
			s.Add(fmt.Appendf(nil, "m:%d", from+i), float64((from+i)*7919%1000), 0, Limits{})
		}
		return s
	}
	sum := func(x, y float64) float64 { return x + y }
	for _, other := range []struct {
		name string
		set  *Set
	}{{"same", make(0)}, {"half", make(500)}} {
		sources := []*Set{make(0), other.set}
		each := func(fn func(member []byte, score float64)) {
			for _, s := range sources {
				s.Ascend(0, s.Len(), func(member []byte, score float64) bool { fn(member, score); return true })
			}
		}
		b.Run(other.name+"/builder", func(b *testing.B) {
			for b.Loop() {
				u := NewBuilder(1000)
				each(func(member []byte, score float64) { u.Add(member, score, sum) })
				u.Set()
			}
		})
		b.Run(other.name+"/set", func(b *testing.B) {
			for b.Loop() {
				u := New(1, 0, Limits{})
				each(func(member []byte, score float64) {
					if old, ok := u.Score(member); ok {
						score = sum(old, score)
					}
					u.Add(member, score, 0, Limits{})
				})
			}
		})
	}
}
