package stream

import "testing"

// What a stream remembers of its producers is copied with it, and refused if it is out of range.
func TestRestoreDedup(t *testing.T) {
	ids := func() []*Producer { return []*Producer{{Name: "b", IDs: []Produced{{"x", ID{1, 1}}}}, {Name: "a"}} }
	for _, c := range []struct {
		name             string
		seconds, entries uint64
		producers        []*Producer
		ok               bool
	}{
		{"the least", 1, 1, ids(), true},
		{"the most", DedupSecondsMax, DedupEntriesMax, ids(), true},
		{"no time", 0, 1, nil, false},
		{"too long", DedupSecondsMax + 1, 1, nil, false},
		{"no entries", 1, 0, nil, false},
		{"too many", 1, DedupEntriesMax + 1, nil, false},
		{"a producer twice", 1, 1, []*Producer{{Name: "a"}, {Name: "a"}}, false},
	} {
		var s Stream
		if ok := s.RestoreDedup(Dedup{Seconds: c.seconds, Entries: c.entries, Added: 7}, c.producers); ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		}
		if s.Plain() == c.ok {
			t.Errorf("%s: plain is %v", c.name, s.Plain())
		}
		if !c.ok {
			continue
		}
		d, other := s.Dedup(), s.Clone()
		if d.Producers()[0].Name != "a" || d.Added != 7 {
			t.Errorf("%s: %+v", c.name, d)
		}
		d.Producers()[1].IDs[0].ID = "changed"
		if of := other.Dedup(); of.Producers()[1].IDs[0].ID != "x" {
			t.Errorf("%s: a copy changes with its original", c.name)
		}
	}
}
