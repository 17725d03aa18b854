package engine

// The table's places: groups share the hashes in their order, in tables of any size.

import (
	"fmt"
	"testing"
)

func TestPlaces(t *testing.T) {
	for _, groups := range []int{1, 2, 3, 5, 8, 41, 210, 1024, 16_777_213, 1 << 40} {
		for _, g := range []int{1, 2, groups / 2, groups - 2, groups - 1} {
			if g < 1 || g >= groups {
				continue
			}
			first := firstPlace(g, groups)
			// What is above the bits of a place makes no difference.
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

// A table that grows is between 7/12 and 7/8 full, and every entry is found and shown once, from any cursor on.
func TestTableGrowsByHalf(t *testing.T) {
	tb := &table{}
	key := func(i int) []byte { return fmt.Appendf(nil, "key:%d", i) }
	rebuilt := 0
	for i := range 100_000 {
		before := len(tb.slots)
		tb.insert(HashBytes(key(i)), newBytesEntry(KindString, key(i), 0, false, false))
		if len(tb.slots) != before {
			rebuilt++
		}
		if tb.used*8 > len(tb.slots)*7 || i > 1000 && tb.used*12 < len(tb.slots)*7-7*groupSlots {
			t.Fatalf("%d of %d slots are used", tb.used, len(tb.slots))
		}
	}
	if rebuilt < 10 || rebuilt > 40 {
		t.Errorf("rebuilt %d times", rebuilt)
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
	if len(seen) != 100_000 {
		t.Errorf("%d keys were shown", len(seen))
	}
	for i := range 100_000 {
		if !tb.entry(key(i)).Ok() {
			t.Fatalf("%s is not found", key(i))
		}
		tb.remove(tb.find(HashBytes(key(i)), key(i)))
	}
	if err := tb.check(); err != nil || tb.used != 0 || len(tb.slots) > groupSlots*5 {
		t.Error(err, tb.used, len(tb.slots))
	}
}
