package stream

// Streams from bytes: what DUMP wrote is restored, wrong data about entries is corrected by the entries, and data that
// is no entry is refused.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/packed"
)

func blocks(s *Stream) (out []Block) {
	s.EachBlock(func(b Block) { out = append(out, b) })
	return out
}

// said is what a file would say about a stream.
func said(s *Stream) Said {
	return Said{Length: uint64(s.Len()), Last: s.LastID(), MaxDeleted: s.MaxDeletedID(), EntriesAdded: s.EntriesAdded(), KnowsAdded: true}
}

// numbers is a listpack of numbers.
func listpack(numbers ...int64) (lp []byte) {
	for _, n := range numbers {
		lp = packed.Append(lp, packed.Number(n))
	}
	return lp
}

// replaced is a listpack with another number at an index.
func replaced(lp []byte, index int, n int64) []byte {
	return packed.Replace(packed.Clone(lp), packed.Seek(lp, index), packed.Number(n))
}

func TestRestore(t *testing.T) {
	s := numbered(10)
	s.Delete(ID{4, 0})
	r, repairs, err := Restore(blocks(s), said(s))
	if err != nil || repairs != nil || r.Check() != nil || contents(&r) != contents(s) {
		t.Fatal("not the same again:", err, repairs, r.Check())
	}
	r.Add(ID{11, 0}, pairs("n", "11"), DefaultLimits)
	if s.Len() != 9 || s.Check() != nil || r.FirstID() != (ID{1, 0}) || r.Len() != 10 {
		t.Errorf("%d and %d entries", s.Len(), r.Len())
	}
	for name, b := range map[string][]Block{
		"a block twice":           {blocks(s)[0], blocks(s)[0]},
		"no listpack":             {{ID{1, 0}, []byte("nothing of the kind")}},
		"nothing":                 {{ID{1, 0}, nil}},
		"an empty listpack":       {{ID{1, 0}, packed.Delete(packed.Append(nil, packed.Number(1)), packed.First(nil), 1)}},
		"more fields than it has": {{ID{1, 0}, listpack(0, 0, 1<<40, 0)}},
		"fewer than no fields":    {{ID{1, 0}, listpack(0, 0, -1, 0)}},
		"half of an entry":        {{ID{1, 0}, listpack(1, 0, 0, 0, 0)}},
		"a wrong way back":        {{ID{1, 0}, listpack(1, 0, 0, 0, 2, 0, 0, 4)}},
		"the ID 0-0":              {{ID{0, 0}, listpack(1, 0, 0, 0, 2, 0, 0, 3)}},
		"no blocks":               nil,
	} {
		if _, _, err := Restore(b, said(s)); err != ErrCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRepairs: wrong data that Redis accepts.
func TestRepairs(t *testing.T) {
	s := numbered(10)
	s.Delete(ID{4, 0})
	all := entries(s, MinID, MaxID, false)
	type change func(b []Block, about *Said) []Block
	for name, x := range map[string]struct {
		change change
		told   string
		length int
		last   ID
		added  uint64
	}{
		"a length too large":     {func(b []Block, about *Said) []Block { about.Length = 120; return b }, "said to have 120 entries, has 9", 9, s.last, 10},
		"a length too small":     {func(b []Block, about *Said) []Block { about.Length = 0; return b }, "said to have 0 entries, has 9", 9, s.last, 10},
		"a huge length":          {func(b []Block, about *Said) []Block { about.Length = 1<<64 - 1; return b }, "said to have 18446744073709551615 entries", 9, s.last, 10},
		"an old stream's length": {func(b []Block, about *Said) []Block { about.Length, about.KnowsAdded = 120, false; return b }, "said to have 120 entries", 9, s.last, 9},
		"a last ID too small":    {func(b []Block, about *Said) []Block { about.Last = ID{3, 0}; return b }, "an entry 10-0 after the last ID 3-0", 9, s.last, 10},
		"a deleted ID too large": {func(b []Block, about *Said) []Block { about.MaxDeleted = MaxID; return b }, "the last deleted ID", 9, s.last, 10},
		"fewer entries than are": {func(b []Block, about *Said) []Block { about.EntriesAdded = 3; return b }, "said to have had 3 entries", 9, s.last, 9},
		"entries beyond numbers": {func(b []Block, about *Said) []Block { about.EntriesAdded = 1 << 63; return b }, "said to have had 9223372036854775808 entries", 9, s.last, 9},
		"blocks out of order":    {func(b []Block, _ *Said) []Block { slices.Reverse(b); return b }, "blocks out of order", 9, s.last, 10},
		"a block's entries":      {func(b []Block, _ *Said) []Block { b[0].Listpack = replaced(b[0].Listpack, 0, 7); return b }, "a block says 7 entries", 9, s.last, 10},
		"a block's deleted":      {func(b []Block, _ *Said) []Block { b[0].Listpack = replaced(b[0].Listpack, 1, 1<<40); return b }, "a block says", 9, s.last, 10},
		"a block's elements": {func(b []Block, _ *Said) []Block {
			b[0].Listpack = packed.Clone(b[0].Listpack)
			b[0].Listpack[4]++
			return b
		}, "the elements of a block counted", 9, s.last, 10},
		"a block without entries": {func(b []Block, _ *Said) []Block { return append(b, Block{ID{90, 0}, listpack(0, 0, 0, 0)}) }, "a block without entries", 9, s.last, 10},
		"a block of deleted ones": {func(b []Block, _ *Said) []Block { return append(b, Block{ID{10, 1}, listpack(0, 1, 0, 0, 3, 0, 0, 3)}) }, "a block without entries", 9, ID{10, 1}, 10},
		"entries of other blocks": {func(b []Block, about *Said) []Block {
			about.Length++
			return append(b, Block{ID{2, 0}, listpack(1, 0, 0, 0, 2, 0, 7, 3)})
		}, "entries out of order", 10, s.last, 10},
		"entries out of order": {func(_ []Block, about *Said) []Block {
			about.Length = 3
			return []Block{{ID{5, 0}, listpack(3, 0, 0, 0, 2, 2, 0, 3, 2, 0, 0, 3, 2, 1, 0, 3)}}
		}, "entries out of order", 3, s.last, 10},
		"an entry before its block": {func(_ []Block, about *Said) []Block {
			about.Length = 1
			return []Block{{ID{5, 0}, listpack(1, 0, 0, 0, 2, -1, 0, 3)}}
		}, "entries out of order", 1, s.last, 10},
		"an ID twice": {func(_ []Block, about *Said) []Block {
			about.Length = 2
			return []Block{{ID{5, 0}, listpack(2, 0, 0, 0, 2, 0, 0, 3, 2, 0, 0, 3)}}
		}, "entries out of order", 1, s.last, 10},
	} {
		about := said(s)
		from := x.change(blocks(s), &about)
		r, repairs, err := Restore(from, about)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if told := strings.Join(repairs, "; "); !strings.Contains(told, x.told) {
			t.Errorf("%s: told %q", name, told)
		}
		if err := r.Check(); err != nil || r.Len() != x.length || r.LastID() != x.last || r.EntriesAdded() != x.added {
			t.Errorf("%s: %v, %d entries up to %v of %d", name, err, r.Len(), r.LastID(), r.EntriesAdded())
		}
		if got := entries(&r, MinID, MaxID, false); x.length == 9 && !slices.Equal(got, all) {
			t.Errorf("%s: %q", name, got)
		}
		if _, repairs, err := Restore(blocks(&r), said(&r)); err != nil || repairs != nil {
			t.Errorf("%s: again %v, %v", name, err, repairs)
		}
	}
}

// FuzzRestore: what Restore accepts can be read and written, and its result is accepted again.
func FuzzRestore(f *testing.F) {
	s := numbered(3)
	s.Add(ID{5, 7}, pairs("other", "fields", "n", "1"), DefaultLimits)
	s.Delete(ID{2, 0})
	for _, b := range blocks(s) {
		f.Add(b.Listpack, b.Listpack, uint64(3), uint64(s.Len()), uint64(5))
	}
	f.Add(listpack(3, 0, 0, 0, 2, 2, 0, 3, 2, 0, 0, 3, 2, 1, 0, 3), listpack(7, 7, 0, 0, 2, 0, 0, 3), uint64(1), uint64(120), uint64(0))
	f.Add(listpack(0, 0, 0, 0, 3, 2, 0, 3), listpack(0, 0, 0, 0), uint64(9), uint64(0), uint64(1<<63))
	wide := listpack(9, 0, 0, 0) // flags that are longer than necessary
	for i := range int64(9) {
		at := packed.End(wide)
		wide = packed.Append(wide, packed.String([]byte("xxxxxxxx")), packed.Number(i), packed.Number(0), packed.Number(3))
		copy(wide[at:], []byte{0xF4, 2, 0, 0, 0, 0, 0, 0, 0, 9})
	}
	f.Add(wide, listpack(1, 0, 0, 0, 2, 0, 0, 3), uint64(50), uint64(3), uint64(3))
	f.Fuzz(func(t *testing.T, one, two []byte, at, length, added uint64) {
		r, _, err := Restore([]Block{{ID{1, 0}, one}, {ID{at, 0}, two}}, Said{Length: length, Last: ID{at, 1}, EntriesAdded: added, KnowsAdded: added%2 == 0})
		if err != nil {
			return
		}
		Exercise(t, &r)
	})
}

// Exercise reads a stream and writes to it in all ways, and checks it after each.
func Exercise(t *testing.T, r *Stream) {
	t.Helper()
	step := func(name string) {
		t.Helper()
		if err := r.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again, repairs, err := Restore(blocks(r), said(r)); err != nil || repairs != nil || again.Len() != r.Len() {
			t.Fatalf("%s: again %v, %v", name, err, repairs)
		}
	}
	step("restored")
	forwards := entries(r, MinID, MaxID, false)
	backwards := entries(r, MinID, MaxID, true)
	slices.Reverse(backwards)
	if !slices.Equal(forwards, backwards) || len(forwards) != r.Len() {
		t.Fatalf("%d entries, forwards %q, backwards %q", r.Len(), forwards, backwards)
	}
	var ids []ID
	for it := r.Range(MinID, MaxID, false); it.Next(); {
		ids = append(ids, it.ID())
	}
	for _, id := range ids {
		if !r.Exists(id) || len(entries(r, id, id, false)) != 1 || len(entries(r, id, id, true)) != 1 {
			t.Fatalf("%v is not found", id)
		}
	}
	if len(ids) > 0 && (ids[0] != r.FirstID() || ids[len(ids)-1] != r.LastEntryID()) {
		t.Fatalf("from %v to %v", r.FirstID(), r.LastEntryID())
	}
	g, made := r.CreateGroup([]byte("exercise"), MinID, UnknownRead)
	c, _ := g.CreateConsumer([]byte("one"), 1)
	other, _ := g.CreateConsumer([]byte("two"), 1)
	if made {
		if n := r.Deliver(g, c, 0, false, 2, func(it *Iter) { text(it) }); n != r.Len() {
			t.Fatalf("%d of %d delivered", n, r.Len())
		}
	}
	r.Lag(g)
	r.History(g, c, MinID, 0, 3, func(ID, *Iter) {})
	step("delivered")
	for i, id := range ids {
		switch i % 3 {
		case 0:
			r.Claim(g, other, id, Claim{DeliveredMillis: 4, Deliveries: -1}, 4)
		case 1:
			if !r.Delete(id) {
				t.Fatalf("%v is not deleted", id)
			}
		case 2:
			g.Ack(id)
		}
	}
	step("deleted")
	r.AutoClaim(g, c, MinID, 1000, 0, false, 5, func(ID) {}, func(Pending) {})
	if id, ok := r.NextID(1); ok {
		if err := r.Add(id, pairs("n", "1"), DefaultLimits); err != nil {
			t.Fatal(err)
		}
		step("added")
	}
	n := r.Len()
	r.Trim(Trim{ByID: true, MinID: r.FirstID()})
	if r.Len() != n {
		t.Fatalf("%d of %d are left", r.Len(), n)
	}
	r.Trim(Trim{MaxLen: 3})
	step("trimmed")
	if want := min(n, 3); r.Len() != want {
		t.Fatalf("%d are left, want %d", r.Len(), want)
	}
	copied := r.Clone()
	if fmt.Sprint(entries(&copied, MinID, MaxID, false)) != fmt.Sprint(entries(r, MinID, MaxID, false)) {
		t.Fatal("a copy is another stream")
	}
	r.Trim(Trim{})
	step("emptied")
}
