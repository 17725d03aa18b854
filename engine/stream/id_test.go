package stream

import (
	"math"
	"testing"
)

// The results of Redis 8.0.6.
func TestParseID(t *testing.T) {
	const most = math.MaxUint64
	for _, c := range []struct {
		text string
		want ID
		ok   bool
	}{
		{"5", ID{5, 0}, true},
		{"5-3", ID{5, 3}, true},
		{"05-03", ID{5, 3}, true},
		{" 5-3", ID{5, 3}, true},
		{"5-+3", ID{5, 3}, true},
		{"5--0", ID{5, 0}, true},
		{"5--07", ID{5, most - 6}, true},
		{"5\x00-9", ID{5, 0}, true},
		{"18446744073709551615-18446744073709551615", MaxID, true},
		{"18446744073709551616", ID{}, false},
		{"", ID{}, false}, {"-", ID{}, false}, {"+", ID{}, false}, {"*", ID{}, false}, {"(5", ID{}, false},
		{"5-", ID{}, false}, {"-5", ID{}, false}, {"5--3", ID{}, false}, {"5--", ID{}, false}, {"5-*", ID{}, false},
		{"5 -3", ID{}, false}, {"5-3 ", ID{}, false}, {"5-3-4", ID{}, false}, {"0x5", ID{}, false},
		{"1e3", ID{}, false}, {" ", ID{}, false}, {"5- ", ID{}, false},
	} {
		if got, ok := ParseID([]byte(c.text), 0); ok != c.ok || ok && got != c.want {
			t.Errorf("%q: %v %v, want %v %v", c.text, got, ok, c.want, c.ok)
		}
	}
	if id, auto, ok := ParseNewID([]byte("5-*")); id != (ID{5, 0}) || !auto || !ok {
		t.Error("5-*:", id, auto, ok)
	}
	if id, auto, ok := ParseNewID([]byte("5-4")); id != (ID{5, 4}) || auto || !ok {
		t.Error("5-4:", id, auto, ok)
	}
	for text, want := range map[string]ID{"-": MinID, "+": MaxID, "7": {7, 9}} {
		if id, ok := ParseBound([]byte(text), 9); id != want || !ok {
			t.Error(text, id, ok)
		}
	}
	if id, exclusive, ok := ParseInterval([]byte("(7-1"), 9); id != (ID{7, 1}) || !exclusive || !ok {
		t.Error("(7-1:", id, exclusive, ok)
	}
	if _, _, ok := ParseInterval([]byte("(+"), 9); ok {
		t.Error("(+ is no ID")
	}
}

func TestNeighbours(t *testing.T) {
	const most = math.MaxUint64
	for _, c := range []struct{ a, b ID }{
		{ID{0, 0}, ID{0, 1}}, {ID{5, 9}, ID{5, 10}}, {ID{5, most}, ID{6, 0}}, {ID{most, most - 1}, MaxID},
	} {
		if next, ok := c.a.Next(); next != c.b || !ok || c.a.Compare(c.b) != -1 {
			t.Errorf("after %v: %v %v", c.a, next, ok)
		}
		if prev, ok := c.b.Prev(); prev != c.a || !ok || c.b.Compare(c.a) != 1 {
			t.Errorf("before %v: %v %v", c.b, prev, ok)
		}
	}
	if _, ok := MaxID.Next(); ok {
		t.Error("there is an ID after the last")
	}
	if _, ok := MinID.Prev(); ok {
		t.Error("there is an ID before 0-0")
	}
}

// FuzzParseID: an ID that was read and written is read as the same.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"5-3", "5", "5--07", "18446744073709551615-1", " +1-+2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, ok := ParseID(b, 0); ok {
			if again, ok := ParseID(id.Append(nil), 0); !ok || again != id {
				t.Errorf("%q: %v, then %v %v", b, id, again, ok)
			}
		}
	})
}
