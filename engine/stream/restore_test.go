package stream

// Streams from bytes: what DUMP wrote comes back, what is damaged is refused.

import (
	"slices"
	"testing"

	"github.com/limitkv/limitkv/engine/packed"
)

func blocks(s *Stream) (out []Block) {
	s.EachBlock(func(b Block) { out = append(out, b) })
	return out
}

func TestRestore(t *testing.T) {
	s := numbered(10)
	s.Delete(ID{4, 0})
	r, err := Restore(blocks(s), s.LastID(), s.MaxDeletedID(), s.EntriesAdded())
	if err != nil || r.Check() != nil || !slices.Equal(entries(&r, MinID, MaxID, false), entries(s, MinID, MaxID, false)) {
		t.Fatal("not the same again:", err, r.Check())
	}
	r.Add(ID{11, 0}, pairs("n", "11"), DefaultLimits)
	if s.Len() != 9 || s.Check() != nil || r.FirstID() != (ID{1, 0}) || r.Len() != 10 {
		t.Errorf("%d and %d entries", s.Len(), r.Len())
	}
	for name, b := range map[string][]Block{
		"blocks out of order":       {blocks(s)[1], blocks(s)[0]},
		"a block twice":             {blocks(s)[0], blocks(s)[0]},
		"an entry after the last":   append(blocks(s), Block{ID{90, 0}, blocks(s)[0].Listpack}),
		"no listpack":               {{ID{1, 0}, []byte("nothing of the kind")}},
		"nothing":                   {{ID{1, 0}, nil}},
		"an empty listpack":         {{ID{1, 0}, packed.Delete(packed.Append(nil, packed.Number(1)), packed.First(nil), 1)}},
		"a master entry alone":      {{ID{1, 0}, packed.Append(nil, packed.Number(0), packed.Number(0), packed.Number(0), packed.Number(0))}},
		"more fields than it has":   {{ID{1, 0}, packed.Append(nil, packed.Number(0), packed.Number(0), packed.Number(1<<40), packed.Number(0))}},
		"fewer than no fields":      {{ID{1, 0}, packed.Append(nil, packed.Number(0), packed.Number(0), packed.Number(-1), packed.Number(0))}},
		"half of an entry":          {{ID{1, 0}, packed.Append(nil, packed.Number(1), packed.Number(0), packed.Number(0), packed.Number(0), packed.Number(0))}},
		"counts that are not right": {{ID{1, 0}, packed.Replace(packed.Clone(blocks(s)[0].Listpack), packed.First(nil), packed.Number(7))}},
	} {
		if _, err := Restore(b, s.LastID(), ID{}, 10); err != ErrCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRestore: what Restore accepts can be read and written.
func FuzzRestore(f *testing.F) {
	s := numbered(3)
	s.Add(ID{5, 7}, pairs("other", "fields", "n", "1"), DefaultLimits)
	s.Delete(ID{2, 0})
	for _, b := range blocks(s) {
		f.Add(b.Listpack)
	}
	f.Fuzz(func(t *testing.T, lp []byte) {
		r, err := Restore([]Block{{ID{1, 0}, lp}}, MaxID, ID{}, 0)
		if err != nil {
			return
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		forwards := entries(&r, MinID, MaxID, false)
		backwards := entries(&r, MinID, MaxID, true)
		slices.Reverse(backwards)
		if !slices.Equal(forwards, backwards) || len(forwards) != r.Len() {
			t.Fatalf("%d entries, forwards %q, backwards %q", r.Len(), forwards, backwards)
		}
		r.Trim(Trim{MaxLen: 1})
		if err := r.Check(); err != nil {
			t.Fatal("trimmed: ", err)
		}
	})
}
