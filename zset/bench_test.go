package zset

import (
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Benchmarks on a set of 1,000,000 members of 14 bytes, added in random order
// with random scores: make bench, or
//
//	go test -run - -bench . ./zset
const benchMembers = 1_000_000

var million = sync.OnceValue(func() *bench {
	b := &bench{set: &Set{}, rnd: rand.New(rand.NewSource(1))}
	collect := func() time.Duration {
		best := time.Hour
		for range 5 {
			start := time.Now()
			runtime.GC()
			best = min(best, time.Since(start))
		}
		return best
	}
	var before, after runtime.MemStats
	gcBefore := collect()
	runtime.ReadMemStats(&before)
	var name []byte
	for _, i := range b.rnd.Perm(benchMembers) {
		name = fmt.Appendf(name[:0], "member:%07d", i)
		b.set.Add(name, b.score(), 0, DefaultLimits)
	}
	b.gc = collect() - gcBefore
	runtime.ReadMemStats(&after)
	b.names = make([][]byte, benchMembers)
	for i := range b.names {
		b.names[i] = fmt.Appendf(nil, "member:%07d", i)
	}
	b.bytes = float64(after.HeapAlloc-before.HeapAlloc) / benchMembers
	return b
})

type bench struct {
	set   *Set
	names [][]byte
	rnd   *rand.Rand
	bytes float64       // of heap for each member
	gc    time.Duration // by which it lengthens a collection
}

func (b *bench) score() float64 { return float64(b.rnd.Intn(1_000_000_000)) }
func (b *bench) name() []byte   { return b.names[b.rnd.Intn(benchMembers)] }
func (b *bench) rank() int      { return b.rnd.Intn(b.set.Len() - 10) }

var sink float64

func visit(_ []byte, score float64) bool { sink += score; return true }

func BenchmarkMemory(b *testing.B) {
	m := million()
	b.ReportMetric(m.bytes, "B/member")
	b.ReportMetric(float64(m.set.MemoryUsage())/float64(m.set.Len()), "reported-B/member")
	b.ReportMetric(float64(m.gc.Microseconds()), "gc-us")
}

func BenchmarkMillion(b *testing.B) {
	m := million()
	s := m.set
	put := func() { // adds again what a benchmark removed
		for _, name := range m.names {
			if s.Len() == benchMembers {
				return
			}
			s.Add(name, m.score(), 0, DefaultLimits)
		}
	}
	ops := []struct {
		name string
		op   func()
	}{
		{"random-numbers-alone", func() { sink += float64(len(m.name())) }},
		{"Score", func() { s.Score(m.name()) }},
		{"Rank", func() { s.Rank(m.name()) }},
		{"AddUpdate", func() { s.Add(m.name(), m.score(), 0, DefaultLimits) }},
		{"AddIncrSmall", func() { s.Add(m.name(), float64(m.rnd.Intn(1000)), Incr, DefaultLimits) }},
		{"RemoveAndAdd", func() {
			name := m.name()
			s.Remove(name)
			s.Add(name, m.score(), 0, DefaultLimits)
		}},
		{"PopMinAndAdd", func() {
			var name [14]byte
			s.PopMin(1, func(member []byte, _ float64) { copy(name[:], member) })
			s.Add(name[:], m.score(), 0, DefaultLimits)
		}},
		{"CountByScore", func() { s.ScoreRange(ScoreBound{Score: m.score()}, ScoreBound{Score: m.score()}) }},
		{"ByScoreLimit10", func() {
			lo, hi := s.ScoreRange(ScoreBound{Score: m.score()}, ScoreBound{Score: 1e9})
			s.Ascend(lo, min(hi, lo+10), visit)
		}},
		{"ByScoreLimit1FromMin", func() {
			lo, hi := s.ScoreRange(ScoreBound{Score: -1e9}, ScoreBound{Score: 5000})
			s.Ascend(lo, min(hi, lo+1), visit)
		}},
		{"ByRank1", func() { s.ByRank(m.rank()) }},
		{"Ascend10", func() { r := m.rank(); s.Ascend(r, r+10, visit) }},
		{"Descend10", func() { r := m.rank(); s.Descend(r, r+10, visit) }},
		{"ScanCount10", func() { s.Scan(uint64(m.rnd.Int63())>>15, 10, func([]byte, float64) {}) }},
	}
	for _, o := range ops {
		b.Run(o.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				o.op()
			}
		})
		put()
	}
	b.Run("RemoveRange10AndAdd", func(b *testing.B) {
		var names [10][14]byte
		for range b.N {
			r, i := m.rank(), 0
			s.Ascend(r, r+10, func(member []byte, _ float64) bool { copy(names[i][:], member); i++; return true })
			s.RemoveRange(r, r+10)
			for i := range names {
				s.Add(names[i][:], m.score(), 0, DefaultLimits)
			}
		}
	})
}

// Drain pops members one by one until none is left, and the set releases memory meanwhile. Run it with at least a
// million iterations.
func BenchmarkDrain(b *testing.B) {
	s := &Set{}
	for range b.N {
		if s.Len() == 0 {
			b.StopTimer()
			s = million().set.Clone()
			b.StartTimer()
		}
		s.PopMin(1, func([]byte, float64) {})
	}
}

// The packed form at its largest, and as in a limiter's window of ten.
func BenchmarkPacked(b *testing.B) {
	for _, n := range []int{10, 128} {
		s := &Set{}
		names := make([][]byte, n)
		for i := range n {
			names[i] = fmt.Appendf(nil, "member:%07d", i)
			s.Add(names[i], float64(i*7919%n), 0, DefaultLimits)
		}
		b.Run(fmt.Sprintf("Rank%d", n), func(b *testing.B) {
			for i := range b.N {
				s.Rank(names[i%n])
			}
		})
		b.Run(fmt.Sprintf("Update%d", n), func(b *testing.B) {
			for i := range b.N {
				s.Add(names[i%n], float64(i*7919%n), 0, DefaultLimits)
			}
		})
		b.Run(fmt.Sprintf("RemoveAndAdd%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				s.Remove(names[i%n])
				s.Add(names[i%n], float64(i*7919%n), 0, DefaultLimits)
			}
		})
		b.Run(fmt.Sprintf("PopMinAndAdd%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				s.PopMin(1, func([]byte, float64) {})
				s.Add(names[i%n], float64(i), 0, DefaultLimits)
			}
		})
	}
}
