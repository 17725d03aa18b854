package stream

// How much memory and time a stream takes.

import (
	"runtime"
	"testing"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var sensor = pairs("sensor-id", "1234", "temperature", "19.8")

func filled(n int) *Stream {
	s := &Stream{}
	for i := range n {
		s.Add(ID{uint64(1_700_000_000_000 + i), 0}, sensor, DefaultLimits)
	}
	return s
}

func BenchmarkMemory(b *testing.B) {
	const n = 200_000
	for b.Loop() {
		before := heap()
		s := filled(n)
		after := heap()
		b.ReportMetric(float64(after-before)/n, "B/entry")
		g, _ := s.CreateGroup([]byte("g"), MinID, 0)
		c, _ := g.CreateConsumer([]byte("c"), 0)
		s.Deliver(g, c, 0, false, 0, func(*Iter) {})
		b.ReportMetric(float64(heap()-after)/n, "B/pending")
		runtime.KeepAlive(s)
	}
}

func BenchmarkAdd(b *testing.B) {
	s := &Stream{}
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		s.Add(ID{1_700_000_000_000 + i, 0}, sensor, DefaultLimits)
	}
}

// BenchmarkRange is one entry found by its ID among 100,000.
func BenchmarkRange(b *testing.B) {
	s := filled(100_000)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		id := ID{1_700_000_000_000 + i%100_000, 0}
		it := s.Range(id, id, false)
		if !it.Next() {
			b.Fatal("missing")
		}
		i += 7919
	}
}

func BenchmarkDeliverAndAck(b *testing.B) {
	s := filled(100_000)
	g, _ := s.CreateGroup([]byte("g"), MinID, 0)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	b.ReportAllocs()
	var ids []ID
	for b.Loop() {
		if s.Deliver(g, c, 1, false, 0, func(it *Iter) { ids = append(ids, it.ID()) }) == 0 {
			g.LastID = MinID
		}
		if len(ids) > 1000 {
			g.Ack(ids[0])
			ids = ids[1:]
		}
	}
}
