package engine

// The table's places: groups share the hashes in their order, in tables of any size.

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

func TestPlaces(t *testing.T) {
	for _, groups := range []int{1, 2, 3, 5, 8, 41, 210, 1024, 16_777_213, 1 << 40} {
		for _, g := range []int{1, 2, groups / 2, groups - 2, groups - 1} {
			if g < 1 || g >= groups {
				continue
			}
			first := firstPlace(g, groups)
			// Bits above those of a place make no difference.
			if first != placeOf(first) || homeOf(first, groups) != g || homeOf(first|0xabcd<<48, groups) != g {
				t.Errorf("%d groups: the first place of group %d is %#x, of group %d", groups, g, first, homeOf(first, groups))
			}
			if before := homeOf(first-1, groups); before != g-1 {
				t.Errorf("%d groups: the place before the first of group %d is of group %d", groups, g, before)
			}
		}
		if last := homeOf(^uint64(0), groups); last != groups-1 {
			t.Errorf("%d groups: the last place is of group %d", groups, last)
		}
	}
}

// A growing table is between 0.54 and 7/8 full and moves few entries at a time. Every entry is found, and shown once
// by a scan from any cursor.
func TestTableGrows(t *testing.T) {
	const keys = 200_000
	tb := &table{}
	key := func(i int) []byte { return fmt.Appendf(nil, "key:%d", i) }
	rebuilt, moved := 0, 0
	for i := range keys {
		hash, e := HashBytes(key(i)), newBytesEntry(KindString, key(i), 0, false, false)
		before := tb.of(hash)
		tb.insert(hash, e)
		if before != nil && before != tb.of(hash) {
			rebuilt++
			moved += int(before.used)
			if before.used > 1<<slotBits {
				t.Fatalf("%d entries were moved at once", before.used)
			}
		}
		if tb.used*8 > tb.width*7 || i > 1000 && tb.used*100 < (tb.width-groupSlots)*54 {
			t.Fatalf("%d of %d slots are used", tb.used, tb.width)
		}
	}
	if err := tb.check(); err != nil {
		t.Fatal(err)
	}
	if len(tb.segments) < 32 || rebuilt < 50 || moved > 5*keys {
		t.Errorf("%d segments, %d rebuilt, %d entries moved", len(tb.segments), rebuilt, moved)
	}
	seen, cursor := map[string]bool{}, uint64(0)
	for {
		at, highest := cursor, uint64(0)
		cursor = tb.scan(at, func(e Entry) {
			place := placeOf(HashBytes(e.Key()))
			if seen[string(e.Key())] || place < at {
				t.Fatalf("%q is shown from cursor %d on", e.Key(), at)
			}
			seen[string(e.Key())] = true
			highest = max(highest, place)
		})
		if cursor == 0 {
			break
		}
		if cursor <= at || highest >= cursor {
			t.Fatalf("cursor %d follows %d and place %d", cursor, at, highest)
		}
	}
	if len(seen) != keys {
		t.Errorf("%d keys were shown", len(seen))
	}
	for i := range keys {
		if !tb.entry(key(i)).Ok() {
			t.Fatalf("%s is not found", key(i))
		}
		tb.remove(tb.find(HashBytes(key(i)), key(i)))
		if i == keys-5 {
			if err := tb.check(); err != nil || tb.width > len(tb.segments)*smallGroups*groupSlots*2 {
				t.Error(err, tb.used, tb.width)
			}
		}
	}
	if err := tb.check(); err != nil || tb.used != 0 || tb.width != 0 {
		t.Error(err, tb.used, tb.width)
	}
}

// of is the segment of a hash, nil if there is none.
func (t *table) of(hash uint64) *segment {
	if len(t.segments) == 0 {
		return nil
	}
	return t.segment(t.numberOf(hash))
}

// While keys are added and removed, a scan and a walk meet every key that stays, and rebuilds stay in proportion.
func TestTableChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	for _, stay := range []int{1, 30, 1000, 7168, 7169, 14_336, 40_000} {
		tb := &table{}
		put := func(name string, i int) {
			key := fmt.Appendf(nil, "%s:%d", name, i)
			tb.insert(HashBytes(key), newBytesEntry(KindString, key, 0, false, false))
		}
		for i := range stay {
			put("stays", i)
		}
		first, next, moved := 0, 0, 0
		change := func(n int) {
			for range n {
				// The number of these keys goes from none to twice as many as stay, and back.
				if first < next && random.Intn(2*stay) < next-first {
					key := fmt.Appendf(nil, "goes:%d", first)
					tb.remove(tb.find(HashBytes(key), key))
					first++
					continue
				}
				key := fmt.Appendf(nil, "goes:%d", next)
				before := tb.of(HashBytes(key))
				put("goes", next)
				if before != tb.of(HashBytes(key)) {
					moved += int(before.used)
				}
				next++
			}
		}
		scanned, cursor := map[string]int{}, uint64(0)
		for {
			if cursor = tb.scan(cursor, func(e Entry) { scanned[string(e.Key())]++ }); cursor == 0 {
				break
			}
			change(3)
		}
		walked := map[string]bool{}
		var w walk
		for p := w.segment(tb); p != nil; p = w.segment(tb) {
			for range 100 {
				if w.at < len(p.slots) {
					if p.slots[w.at] != nil {
						walked[string(Entry{(*header)(p.slots[w.at])}.Key())] = true
					}
					w.at++
				}
			}
			if w.at == len(p.slots) {
				w.leave(tb)
			}
			change(20)
		}
		change(20 * stay)
		for i := range stay {
			key := fmt.Sprintf("stays:%d", i)
			if scanned[key] != 1 || !walked[key] || !tb.entry([]byte(key)).Ok() {
				t.Fatalf("%s of %d: scanned %d times, walked over %v", key, stay, scanned[key], walked[key])
			}
		}
		if err := tb.check(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d keys stay, %d came, %d were moved", stay, next, moved)
		if next < 5*stay || stay > 1000 && moved > 6*next {
			t.Errorf("%d keys stay, %d came, %d were moved", stay, next, moved)
		}
	}
}

// BenchmarkTable measures, per key, the insertion into a growing table and a find there.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{1000, 16_000, 160_000} {
		hashes, entries := make([]uint64, n), make([]Entry, n)
		for i := range n {
			key := fmt.Appendf(nil, "key:%012d", i)
			hashes[i], entries[i] = HashBytes(key), newBytesEntry(KindString, key, 32, false, false)
		}
		var tb *table
		b.Run(fmt.Sprintf("insert/%d", n), func(b *testing.B) {
			worst := int64(0)
			for b.Loop() {
				tb = &table{}
				for i, e := range entries {
					began := Monotonic()
					tb.insert(hashes[i], e)
					worst = max(worst, Monotonic()-began)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
			b.ReportMetric(float64(worst), "worst-µs")
		})
		b.Run(fmt.Sprintf("find/%d", n), func(b *testing.B) {
			if tb == nil { // the insert benchmark did not run
				tb = &table{}
				for i, e := range entries {
					tb.insert(hashes[i], e)
				}
			}
			for b.Loop() {
				for i, e := range entries {
					if tb.find(hashes[i], e.Key()) < 0 {
						b.Fatal("not found")
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}
