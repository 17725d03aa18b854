package rdb

// Values whose parts contradict each other, or that are out of order. Redis serves them, so they are read and repaired.

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// contradiction is such a value, its repair, and how many elements it then has.
type contradiction struct {
	name, body, told string
	length           int
}

// listpackOf is a listpack of numbers and strings, as a string of a payload.
func listpackOf(items ...any) []byte {
	lp := packed.Slice(nil, 0, 0, 0)
	for _, x := range items {
		if n, ok := x.(int); ok {
			lp = packed.Append(lp, packed.Number(int64(n)))
		} else {
			lp = packed.Append(lp, packed.String([]byte(x.(string))))
		}
	}
	return packed.Clone(lp)
}

// saying changes the number of elements in a listpack's header.
func saying(n uint16, lp []byte) []byte {
	binary.LittleEndian.PutUint16(lp[4:], n)
	return lp
}

func contradictory() []contradiction {
	of := func(t byte, parts ...any) string {
		w := encoder{}
		w.byte(t)
		for _, p := range parts {
			switch p := p.(type) {
			case int:
				w.len(uint64(p))
			case string:
				w.string([]byte(p))
			case []byte:
				w.len(uint64(len(p)))
				w.b = append(w.b, p...)
			case [16]byte:
				w.b = append(w.b, p[:]...)
			case int64:
				w.millis(p)
			}
		}
		return string(w.b)
	}
	id := func(n byte) (id [16]byte) {
		id[7] = n
		return id
	}
	one := id(1)
	block := listpackOf(1, 0, 1, "f", 0, 2, 0, 0, "v", 4)
	intset := "\x02\x00\x00\x00\x03\x00\x00\x00\x05\x00\x01\x00\x05\x00"
	return []contradiction{
		{"a list's node", of(typeList, 1, 2, saying(9, listpackOf("a", 1))), "said to have 9 elements, has 2", 2},
		{"a list's node that says it has none", of(typeList, 2, 2, saying(0, listpackOf("a", 1)), 2, listpackOf("b")), "2 elements left out", 1},
		{"an intset", of(typeSetIntset, intset), "an intset out of order", 2},
		{"a set", of(typeSetPacked, listpackOf("a", 1, "a", "b", 1)), "members of a set twice", 3},
		{"a set's number", of(typeSetPacked, saying(1, listpackOf("a", 1))), "said to have 1 elements, has 2", 2},
		{"a sorted set in another order", of(typeZSetPacked, listpackOf("b", 2, "a", 1)), "out of order", 2},
		{"a sorted set's member twice", of(typeZSetPacked, listpackOf("a", 1, "b", 2, "a", 3)), `the member "a" of a sorted set twice`, 2},
		{"a sorted set's NaN", of(typeZSetPacked, listpackOf("a", "nan")), `the score "nan"`, 1},
		{"a sorted set's word", of(typeZSetPacked, listpackOf("a", "word")), `the score "word"`, 1},
		{"a hash's field twice", of(typeHash, 3, "f", "v", "g", "w", "f", "x"), `the field "f" of a hash twice`, 2},
		{"a packed hash's field twice", of(typeHashPacked, listpackOf("f", "v", "g", "w", "f", "x")), "fields of a hash twice", 2},
		{"a hash's deadlines", of(typeHashPackedDue, int64(5e12), listpackOf("g", "w", 0, "f", "v", 5000000000000)), "not in the order of their deadlines", 2},
		{"a hash's deadlines and a field twice", of(typeHashPackedDue, int64(5e12), listpackOf("g", "w", 0, "f", "v", 5000000000000, "g", "x", 3)), "fields of a hash twice", 2},
		{"a stream's length", of(typeStream3, 1, string(one[:]), block, 120, 1, 0, 1, 0, 0, 0, 120, 0), "said to have 120 entries, has 1", 1},
		{"a stream's pending entry", of(typeStream3, 1, string(one[:]), block, 1, 1, 0, 1, 0, 0, 0, 1, 1, "g", 1, 0, 1, 1, one, int64(5), 1, 0), "1 pending entries without a consumer", 1},
		{"a stream's pending entry of two", of(typeStream3, 1, string(one[:]), block, 1, 1, 0, 1, 0, 0, 0, 1, 1, "g", 1, 0, 1, 1, one, int64(5), 1,
			2, "a", int64(5), int64(5), 1, one, "b", int64(5), int64(5), 1, one), "a pending entry 1-0 of two consumers", 1},
		{"a stream's group", of(typeStream3, 1, string(one[:]), block, 1, 1, 0, 1, 0, 0, 0, 1, 1, "g", 1, 0, math.MinInt64, 0, 0), "a group that has read", 1},
	}
}

func TestContradictory(t *testing.T) {
	for _, c := range contradictory() {
		v, err := Load(AppendFooter([]byte(c.body)), limits)
		if err != nil || !strings.Contains(strings.Join(v.Repairs, "; "), c.told) {
			t.Errorf("%s: %q, %v", c.name, v.Repairs, err)
			continue
		}
		check(t, v)
		if n := v.Object.(interface{ Len() int }).Len(); n != c.length {
			t.Errorf("%s: %d elements", c.name, n)
		}
		again, err := Load(AppendDump(nil, entry(v), format), limits)
		if err != nil || again.Repairs != nil {
			t.Errorf("%s: read again %v, %v", c.name, again.Repairs, err)
		}
		if s, is := again.Object.(*stream.Stream); is {
			exercise(t, s)
		}
	}
}

// TestReadBeyond checks a group whose number of read entries exceeds the entries ever added: the number is not written
// for readers that refuse it.
func TestReadBeyond(t *testing.T) {
	s := &stream.Stream{}
	if err := s.Add(stream.ID{Millis: 1}, [][]byte{[]byte("f"), []byte("v")}, stream.DefaultLimits); err != nil {
		t.Fatal(err)
	}
	s.CreateGroup([]byte("g"), stream.ID{Millis: 1}, 99)
	s.CreateGroup([]byte("h"), stream.ID{Millis: 1}, 1)
	for who, want := range map[Audience]int64{ForAny: 99, ForRedis: 99, ForRedis13: stream.UnknownRead, ForRedis15: stream.UnknownRead} {
		w := encoder{Format: Format{For: who}}
		w.stream(s, typeStream3)
		r := decoder{Reader: Reader{rest: w.b}}
		again := r.stream(typeStream3)
		if r.Failed() || again.Groups()[0].EntriesRead != want || again.Groups()[1].EntriesRead != 1 {
			t.Errorf("for %d: %d, %s", who, again.Groups()[0].EntriesRead, r.problem)
		}
	}
}

// TestFirstStays checks that the first of two duplicates remains, which is the one that Redis finds.
func TestFirstStays(t *testing.T) {
	for _, body := range []string{"\x04\x03\x01f\x01v\x01g\x01w\x01f\x01x", "\x10\x1d" + string(listpackOf("f", "v", "g", "w", "f", "x"))} {
		body = strings.Replace(body, "\x1d", string([]byte{byte(len(listpackOf("f", "v", "g", "w", "f", "x")))}), 1)
		v := load(t, AppendFooter([]byte(body)), limits)
		var s packed.Scratch
		if got, ok := v.Object.(*hash.Hash).Get([]byte("f"), &s); !ok || string(got) != "v" {
			t.Errorf("%q: %q", body, got)
		}
	}
	lp := listpackOf("a", 1, "b", 2, "a", 3)
	v := load(t, AppendFooter(append([]byte{typeZSetPacked, byte(len(lp))}, lp...)), limits)
	if score, ok := v.Object.(*zset.Set).Score([]byte("a")); !ok || score != 1 {
		t.Error(score)
	}
}

// TestMinusZero checks that -0 remains in a listpack, and is dumped as it was read.
func TestMinusZero(t *testing.T) {
	lp := listpackOf("a", "-0", "b", 2)
	payload := AppendFooter(append([]byte{typeZSetPacked, byte(len(lp))}, lp...))
	v, err := Load(payload, limits)
	if err != nil || v.Repairs != nil {
		t.Fatal(v.Repairs, err)
	}
	if score, _ := v.Object.(*zset.Set).Score([]byte("a")); !math.Signbit(score) {
		t.Error(score)
	}
	if again := AppendDump(nil, entry(v), format); string(again) != string(payload) {
		t.Errorf("%q", again)
	}
}

// TestNumbers checks the numbers at the beginning of scores in listpacks and in old sorted sets.
func TestNumbers(t *testing.T) {
	for text, want := range map[string][2]float64{ // in a listpack, and in an old sorted set
		"1": {1, 1}, "1.5x": {1.5, 1.5}, " 1": {0, 1}, "0x10": {0, 16}, "0x1.8": {0, 1.5}, "-0X1p1": {0, -2}, "1_0": {1, 1}, "+7": {7, 7}, "1e+2": {100, 100},
		"inf": {math.Inf(1), math.Inf(1)}, "-Infinity": {math.Inf(-1), math.Inf(-1)}, "1e999": {math.Inf(1), math.Inf(1)}, "x": {0, 0}, "": {0, 0}, "1\x002": {1, 1},
		".": {0, 0}, "1e": {1, 1}, "--1": {0, 0}, strings.Repeat("9", 300): {1e127, 1e127},
	} {
		for i, c := range []bool{false, true} {
			if f, n := number([]byte(text), c); f != want[i] || n > len(text) || (n == 0) != (text == "" || text == "x" || text == "." || text == "--1" || i == 0 && text == " 1") {
				t.Errorf("%q, %v: %v of %d bytes, want %v", text, c, f, n, want[i])
			}
		}
	}
}

// exercise reads a stream and the pending entries of its groups, and writes to both.
func exercise(t *testing.T, s *stream.Stream) {
	t.Helper()
	step := func(name string) {
		t.Helper()
		if err := s.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, g := range s.Groups() {
		s.Lag(g)
		next, _ := g.CreateConsumer([]byte("exercise"), 1)
		var pending []stream.ID
		g.EachPending(stream.MinID, func(p stream.Pending) bool {
			pending = append(pending, p.ID)
			return true
		})
		for _, c := range g.Consumers() {
			s.History(g, c, stream.MinID, 0, 2, func(stream.ID, *stream.Iter) {})
			g.EachPendingOf(c, stream.MinID, func(p stream.Pending) bool { return p.Consumer == c })
		}
		step("read again")
		for i, id := range pending {
			switch i % 3 {
			case 0:
				g.Ack(id)
			case 1:
				s.Claim(g, next, id, stream.Claim{Deliveries: -1}, 3)
			}
		}
		s.AutoClaim(g, next, stream.MinID, 2, 0, false, 4, func(stream.ID) {}, func(stream.Pending) {})
		s.Deliver(g, next, 3, false, 5, func(it *stream.Iter) {
			for it.NextPair() {
				it.Field()
				it.Value()
			}
		})
		step("delivered")
		if cs := g.Consumers(); len(cs) > 1 {
			g.DeleteConsumer([]byte(cs[0].Name))
		}
		step("a consumer deleted")
	}
	for s.Len() > 2 {
		s.Delete(s.FirstID())
		s.Trim(stream.Trim{MaxLen: s.Len() - 1})
		s.Delete(s.LastEntryID())
		step("deleted")
	}
	if id, ok := s.NextID(6); ok {
		if err := s.Add(id, [][]byte{[]byte("f"), []byte("v")}, stream.DefaultLimits); err != nil {
			t.Fatal(err)
		}
	}
	step("added")
}
