package hash

// Hashes against a map with deadlines, and against Redis's encodings, order and DUMP.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/packed"
)

func get(h *Hash, field string) (string, bool) {
	var s packed.Scratch
	v, ok := h.Get([]byte(field), &s)
	return string(v), ok
}

func fields(h *Hash) (out []string) {
	for it := h.Iter(); it.Next(); {
		out = append(out, string(it.Field()))
	}
	return out
}

func TestEncodingsAsRedis(t *testing.T) {
	lim := Limits{MaxPackedFields: 3, MaxPackedBytes: 5}
	set := func(h *Hash, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			h.Set([]byte(pairs[i]), []byte(pairs[i+1]), lim)
		}
	}
	for _, c := range []struct {
		name string
		do   func(h *Hash)
		want string
	}{
		{"empty", func(h *Hash) {}, "listpack"},
		{"as many fields as may be", func(h *Hash) { set(h, "a", "1", "b", "2", "c", "3") }, "listpack"},
		{"one more", func(h *Hash) { set(h, "a", "1", "b", "2", "c", "3", "d", "4") }, "hashtable"},
		{"the longest value that may be", func(h *Hash) { set(h, "a", "12345") }, "listpack"},
		{"a longer value", func(h *Hash) { set(h, "a", "123456") }, "hashtable"},
		{"a longer field", func(h *Hash) { set(h, "abcdef", "1") }, "hashtable"},
		{"never back", func(h *Hash) { set(h, "abcdef", "1"); h.Delete([]byte("abcdef")) }, "hashtable"},
		{"a command with many fields", func(h *Hash) { h.Prepare(4, 1, 8, lim) }, "hashtable"},
		{"a command with a long one", func(h *Hash) { h.Prepare(1, 6, 8, lim) }, "hashtable"},
		{"a deadline", func(h *Hash) { set(h, "a", "1"); h.SetDeadline([]byte("a"), 5) }, "listpackex"},
		{"a deadline that was taken off", func(h *Hash) {
			set(h, "a", "1")
			h.SetDeadline([]byte("a"), 5)
			h.SetDeadline([]byte("a"), 0)
		}, "listpackex"},
		{"no deadline to take off", func(h *Hash) { set(h, "a", "1"); h.SetDeadline([]byte("a"), 0) }, "listpack"},
		{"a command that may set deadlines", func(h *Hash) { set(h, "a", "1"); h.PrepareDeadlines() }, "listpackex"},
		{"one field more, with deadlines", func(h *Hash) {
			h.PrepareDeadlines()
			set(h, "a", "1", "b", "2", "c", "3", "d", "4")
		}, "hashtable"},
	} {
		var h Hash
		c.do(&h)
		if got := h.Encoding(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if err := h.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOrderOfPackedFields(t *testing.T) {
	var h Hash
	for i, f := range []string{"a", "b", "c", "d", "e"} {
		h.Set([]byte(f), strconv.AppendInt(nil, int64(i), 10), DefaultLimits)
	}
	h.Set([]byte("b"), []byte("new"), DefaultLimits)
	want := func(step string, order ...string) {
		t.Helper()
		if got := fields(&h); !slices.Equal(got, order) {
			t.Errorf("%s: %v, want %v", step, got, order)
		}
	}
	want("a value replaced stays in its place", "a", "b", "c", "d", "e")
	h.SetDeadline([]byte("d"), 200)
	h.SetDeadline([]byte("e"), 100)
	want("deadlines first, earliest first", "e", "d", "a", "b", "c")
	h.SetDeadline([]byte("c"), 200)
	want("an equal deadline goes before", "e", "c", "d", "a", "b")
	h.SetKeepDeadline([]byte("c"), []byte("x"), DefaultLimits)
	want("a value with its deadline kept stays", "e", "c", "d", "a", "b")
	h.Set([]byte("e"), []byte("x"), DefaultLimits)
	want("a deadline lost goes to the end", "c", "d", "a", "b", "e")
	if due, ok := h.Deadline([]byte("e")); due != 0 || !ok {
		t.Errorf("deadline of e: %d %v", due, ok)
	}
	h.SetDeadline([]byte("d"), 0)
	want("so does one taken off", "c", "a", "b", "e", "d")
	var gone []string
	if n := h.ExpireDue(199_999, 10, func(f []byte) { gone = append(gone, string(f)) }); n != 0 {
		t.Errorf("%d fields gone before their time: %v", n, gone)
	}
	if n := h.ExpireDue(200_000, 10, func(f []byte) { gone = append(gone, string(f)) }); n != 1 || gone[0] != "c" {
		t.Errorf("%d fields gone: %v", n, gone)
	}
}

// entry and model: a hash in its simplest form, without regard to speed.
type entry struct {
	value string
	due   int64
}

func TestAgainstModel(t *testing.T) {
	for _, c := range []struct {
		name   string
		lim    Limits
		fields int
		steps  int
		want   string
	}{
		{"packed", DefaultLimits, 40, 5000, "listpackex"},
		{"large", Limits{}, 300, 6000, "hashtable"},
		{"growing", Limits{MaxPackedFields: 64, MaxPackedBytes: 64}, 200, 5000, "hashtable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			h, model := &Hash{}, map[string]entry{}
			did := map[string]int{}
			now := int64(1000)
			for step := range c.steps {
				// The number of fields goes up and down, so that the table grows and shrinks.
				universe := c.fields
				if step/500%2 == 1 {
					universe = max(1, c.fields/10)
				}
				field := fmt.Sprint("f", rnd.IntN(universe))
				if rnd.IntN(2) == 0 {
					field = fmt.Sprint(rnd.IntN(universe))
				}
				old, exists := model[field]
				switch op := rnd.IntN(10); {
				case op < 4:
					value := randomValue(rnd)
					e := entry{value: value}
					created := false
					if rnd.IntN(3) == 0 {
						e.due = old.due
						created = h.SetKeepDeadline([]byte(field), []byte(value), c.lim)
						did["keep"]++
					} else {
						created = h.Set([]byte(field), []byte(value), c.lim)
						did["set"]++
					}
					if created == exists {
						t.Fatalf("step %d: set %q: created %v", step, field, created)
					}
					model[field] = e
				case op < 6:
					if step/500%2 == 1 {
						for name := range model {
							field = name
							break
						}
						_, exists = model[field]
					}
					if got := h.Delete([]byte(field)); got != exists {
						t.Fatalf("step %d: delete %q: %v", step, field, got)
					}
					delete(model, field)
					did["delete"]++
				case op < 8:
					due := int64(0)
					if rnd.IntN(4) > 0 {
						due = now + 1 + int64(rnd.IntN(3000))
					}
					if got := h.SetDeadline([]byte(field), due); got != exists {
						t.Fatalf("step %d: deadline of %q: %v", step, field, got)
					}
					if exists {
						model[field] = entry{old.value, due}
						did["deadline"]++
					}
				case op < 9:
					now += int64(rnd.IntN(300))
					did["expired"] += expire(t, h, model, now, 1+rnd.IntN(5))
				default:
					clone := h.Clone()
					h = &clone
				}
				if err := h.Check(); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				compare(t, step, h, model, field)
			}
			if h.Encoding() != c.want {
				t.Errorf("ended as %s, want %s", h.Encoding(), c.want)
			}
			for _, op := range []string{"set", "keep", "delete", "deadline", "expired"} {
				if did[op] < 40 {
					t.Errorf("only %d × %s: the test did no work", did[op], op)
				}
			}
		})
	}
}

func randomValue(rnd *rand.Rand) string {
	switch rnd.IntN(3) {
	case 0:
		return strconv.FormatInt(rnd.Int64()>>rnd.IntN(64)-1, 10)
	case 1:
		return string(bytes.Repeat([]byte{'v'}, rnd.IntN(60)))
	}
	return fmt.Sprint("value", rnd.IntN(1000))
}

// expire compares one ExpireDue with the model and returns how many fields went.
func expire(t *testing.T, h *Hash, model map[string]entry, now int64, max int) int {
	t.Helper()
	due := 0
	for _, e := range model {
		if e.due != 0 && e.due <= now {
			due++
		}
	}
	last := int64(0)
	n := h.ExpireDue(now*1000+999, max, func(field []byte) {
		e, ok := model[string(field)]
		if !ok || e.due == 0 || e.due > now || e.due < last {
			t.Fatalf("%q expired at %d, after %d; it is due at %d", field, now, last, e.due)
		}
		last = e.due
		delete(model, string(field))
	})
	if n != min(due, max) {
		t.Fatalf("%d fields expired, %d were due, at most %d asked for", n, due, max)
	}
	return n
}

func compare(t *testing.T, step int, h *Hash, model map[string]entry, field string) {
	t.Helper()
	if h.Len() != len(model) {
		t.Fatalf("step %d: %d fields, want %d", step, h.Len(), len(model))
	}
	e, exists := model[field]
	v, ok := get(h, field)
	due, ok2 := h.Deadline([]byte(field))
	if ok != exists || ok2 != exists || v != e.value || due != e.due || h.Exists([]byte(field)) != exists {
		t.Fatalf("step %d: %q is %q, %v, due %d, %v; want %+v, %v", step, field, v, ok, due, ok2, e, exists)
	}
	next, n := int64(0), 0
	for it := h.Iter(); it.Next(); n++ {
		want, ok := model[string(it.Field())]
		if !ok || string(it.Value()) != want.value || it.Deadline() != want.due {
			t.Fatalf("step %d: iterator at %q %q due %d, want %+v", step, it.Field(), it.Value(), it.Deadline(), want)
		}
		if want.due != 0 && (next == 0 || want.due < next) {
			next = want.due
		}
	}
	if n != len(model) || h.NextDue() != next {
		t.Fatalf("step %d: iterator passed %d of %d; next due %d, want %d", step, n, len(model), h.NextDue(), next)
	}
}

func TestScanReturnsWhatIsThereThroughout(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := range 60 {
		var h Hash
		kept := 1 + rnd.IntN(200)
		for i := range kept {
			h.Set(fmt.Append(nil, "kept", i), []byte("v"), Limits{})
		}
		others := rnd.IntN(3000)
		for i := range others {
			h.Set(fmt.Append(nil, "other", i), []byte("v"), Limits{})
		}
		seen := map[string]bool{}
		calls := 0
		for cursor := uint64(0); ; calls++ {
			cursor = h.Scan(cursor, 10, func(it *Iter) { seen[string(it.Field())] = true })
			if cursor == 0 {
				break
			}
			for range rnd.IntN(40) {
				if round%3 == 0 {
					h.Set(fmt.Append(nil, "other", rnd.IntN(6000)), []byte("v"), Limits{})
				} else {
					h.Delete(fmt.Append(nil, "other", rnd.IntN(others+1)))
				}
			}
		}
		for i := range kept {
			if !seen[fmt.Sprint("kept", i)] {
				t.Fatalf("round %d: kept%d of %d was not returned in %d calls", round, i, kept, calls)
			}
		}
		if err := h.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRandomFields(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{10, 500} {
		for _, lim := range []Limits{DefaultLimits, {}} {
			var h Hash
			for i := range n {
				h.Set(fmt.Append(nil, "f", i), fmt.Append(nil, "v", i), lim)
			}
			drawn, sampled := map[string]int{}, map[string]int{}
			const each = 100
			for range n * each / 20 {
				h.Draw(20, rnd.Uint64, func(it *Iter) { drawn[string(it.Field())]++ })
				distinct := map[string]bool{}
				h.Sample(n/5, rnd.Uint64, func(it *Iter) {
					distinct[string(it.Field())] = true
					sampled[string(it.Field())]++
				})
				if len(distinct) != n/5 {
					t.Fatalf("a sample of %d has %d different fields", n/5, len(distinct))
				}
			}
			for i := range n {
				f := fmt.Sprint("f", i)
				expect := float64(each)
				if d := float64(drawn[f]); d < expect*0.6 || d > expect*1.5 {
					t.Errorf("%d fields, %s: %s drawn %v times, expected about %v", n, h.Encoding(), f, d, expect)
				}
				expect = float64(n*each/20) / 5
				if s := float64(sampled[f]); s < expect*0.6 || s > expect*1.5 {
					t.Errorf("%d fields, %s: %s sampled %v times, expected about %v", n, h.Encoding(), f, s, expect)
				}
			}
			all := 0
			h.Sample(n+1, rnd.Uint64, func(*Iter) { all++ })
			if all != n {
				t.Errorf("a sample of more than all has %d of %d", all, n)
			}
		}
	}
}

func TestManyDeadlines(t *testing.T) {
	var h Hash
	const n = 100_000
	rnd := rand.New(rand.NewPCG(3, 3))
	for i := range n {
		f := fmt.Append(nil, "field", i)
		h.Set(f, []byte("v"), DefaultLimits)
		h.SetDeadline(f, int64(1+rnd.IntN(1_000_000)))
	}
	gone := 0
	for h.Len() > 0 {
		gone += h.ExpireDue(h.NextDue()*1000, 100, func([]byte) {})
	}
	if gone != n {
		t.Errorf("%d of %d fields expired", gone, n)
	}
}

func TestListpackIsWhatDumpWrites(t *testing.T) {
	var h Hash
	h.Set([]byte("f"), []byte("v"), DefaultLimits)
	if lp, deadlines := h.Listpack(); packed.Count(lp) != 2 || deadlines {
		t.Errorf("%d elements, deadlines %v", packed.Count(lp), deadlines)
	}
	h.SetDeadline([]byte("f"), 77)
	if lp, deadlines := h.Listpack(); packed.Count(lp) != 3 || !deadlines || !packed.Equal(lp, packed.Last(lp), []byte("77")) {
		t.Errorf("%d elements, deadlines %v", packed.Count(lp), deadlines)
	}
	h.Prepare(1000, 0, 0, DefaultLimits)
	if lp, _ := h.Listpack(); lp != nil {
		t.Error("a large hash has a list")
	}
}

// TestReserve checks that a hash that gets all its fields at once grows once, and that nothing is reserved for fields
// that repeat.
func TestReserve(t *testing.T) {
	var apart, repeated [][]byte
	for i := range 10 {
		value := bytes.Repeat([]byte("v"), 30+i)
		apart = append(apart, fmt.Appendf(nil, "field:%d", i), value)
		repeated = append(repeated, []byte("field"), value)
	}
	lim := Limits{MaxPackedFields: 512, MaxPackedBytes: 64}
	var h, r Hash
	h.Reserve(apart)
	r.Reserve(repeated)
	reserved := cap(h.lp)
	for i := 0; i < len(apart); i += 2 {
		h.Set(apart[i], apart[i+1], lim)
		r.Set(repeated[i], repeated[i+1], lim)
	}
	if h.Check() != nil || r.Check() != nil || h.Len() != 10 || r.Len() != 1 {
		t.Fatal(h.Check(), r.Check(), h.Len(), r.Len())
	}
	if reserved != cap(h.lp) || reserved > len(h.lp)+len(h.lp)/8 {
		t.Errorf("reserved %d, then %d, for %d bytes", reserved, cap(h.lp), len(h.lp))
	}
	if cap(r.lp) > 2*len(r.lp) {
		t.Errorf("%d bytes kept for %d", cap(r.lp), len(r.lp))
	}
}
