package table

// The table against a map, its records and its hash.

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

func record(key, value string) Record {
	r := NewRecord([]byte(key), len(value), len(value)%2 == 1)
	copy(r.Value(), value)
	return r
}

func TestRecords(t *testing.T) {
	for _, k := range []int{0, 1, 31, 32, 63, 64, 5000, 100_000} {
		for _, v := range []int{0, 1, 127, 128, 20_000} {
			key, value := strings.Repeat("k", k), strings.Repeat("v", v)
			for _, r := range []Record{record(key, value), record(key, value).Clone()} {
				if string(r.Key()) != key || string(r.Value()) != value || r.Mark() != (v%2 == 1) {
					t.Errorf("key of %d and value of %d bytes come back as %d and %d", k, v, len(r.Key()), len(r.Value()))
				}
			}
		}
	}
}

func TestAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	table, model := &Table{}, map[string]string{}
	grown, emptied := 0, 0
	for range 60 {
		// Towards a size, then away from it.
		target := rnd.IntN(4000)
		if rnd.IntN(4) == 0 {
			target = 0
		}
		for len(model) != target {
			key := fmt.Sprint("key", rnd.IntN(8000))
			_, exists := model[key]
			value := fmt.Sprint(rnd.IntN(1000))
			switch {
			case len(model) < target && exists:
				table.Replace(table.Get([]byte(key)), record(key, value))
				model[key] = value
			case len(model) < target:
				table.Add(record(key, value))
				model[key] = value
			default:
				if !exists {
					for key = range model {
						break
					}
				}
				if r := table.Delete([]byte(key)); string(r.Value()) != model[key] {
					t.Fatalf("deleted %q, want %q", r.Value(), model[key])
				}
				delete(model, key)
			}
			if table.Len() != len(model) {
				t.Fatalf("%d records, want %d", table.Len(), len(model))
			}
		}
		if err := table.Check(); err != nil {
			t.Fatal(err)
		}
		copies := 0
		clone := table.Clone(func(Record) { copies++ })
		if err := clone.Check(); err != nil || copies != len(model) {
			t.Fatal("clone:", err, copies)
		}
		for it := table.Iter(); it.Next(); {
			key := string(it.Record().Key())
			if it.Record() == clone.Get([]byte(key)) {
				t.Fatalf("the clone shares %q", key)
			}
			if string(it.Record().Value()) != model[key] {
				t.Fatalf("%q is %q, want %q", key, it.Record().Value(), model[key])
			}
			copies--
		}
		if copies != 0 {
			t.Fatalf("%d records not passed by the iterator", copies)
		}
		if !table.Get([]byte("missing")).None() || !table.Delete([]byte("missing")).None() {
			t.Fatal("found what is missing")
		}
		grown = max(grown, table.buckets)
		if len(model) == 0 {
			emptied++
			if table.MemoryUsage() != 0 {
				t.Fatalf("empty, and yet %d bytes", table.MemoryUsage())
			}
		}
		table = &clone
	}
	if grown < segmentSize || emptied == 0 {
		t.Errorf("at most %d buckets, empty %d times: the test did no work", grown, emptied)
	}
}

// Keys in sequence fill buckets evenly.
func TestChains(t *testing.T) {
	var table Table
	for i := range 100_000 {
		table.Add(record(fmt.Sprint("user:", i), ""))
	}
	if table.chainMax > 30 {
		t.Errorf("a chain of %d records", table.chainMax)
	}
}

func filled(n int) (*Table, [][]byte) {
	t := &Table{}
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Append(nil, "member:", i)
		t.Add(NewRecord(keys[i], 0, false))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return t, keys
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t, keys := filled(n)
			i := 0
			for b.Loop() {
				if t.Get(keys[i]).None() {
					b.Fatal("missing")
				}
				if i++; i == n {
					i = 0
				}
			}
			b.ReportMetric(float64(t.MemoryUsage()-t.bytes)/float64(n), "B/reference")
			b.ReportMetric(float64(t.chained)/float64(t.buckets), "chained/bucket")
		})
	}
}

func BenchmarkAddDelete(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t, keys := filled(n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				t.Delete(keys[i])
				t.Add(NewRecord(keys[i], 0, false))
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkCollection is the time of a full garbage collection with a million records.
func BenchmarkCollection(b *testing.B) {
	t, _ := filled(1_000_000)
	for b.Loop() {
		runtime.GC()
	}
	runtime.KeepAlive(t)
}
