package stream

// Streams against a slice of entries, and the IDs that they give.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func pairs(words ...string) (out [][]byte) {
	for _, w := range words {
		out = append(out, []byte(w))
	}
	return out
}

// text renders the entry that an iterator is at.
func text(it *Iter) string {
	var b strings.Builder
	b.WriteString(it.ID().String())
	for it.NextPair() {
		fmt.Fprintf(&b, " %s=%s", it.Field(), it.Value())
	}
	return b.String()
}

func entries(s *Stream, start, end ID, reverse bool) (out []string) {
	for it := s.Range(start, end, reverse); it.Next(); {
		out = append(out, text(&it))
	}
	return out
}

// contents renders everything that a file has about a stream.
func contents(s *Stream) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Len(), s.FirstID(), s.LastID(), s.MaxDeletedID(), s.EntriesAdded())
	s.EachBlock(func(block Block) { fmt.Fprintf(&b, "%v %q\n", block.ID, block.Listpack) })
	for _, g := range s.Groups() {
		fmt.Fprintln(&b, g.Name, g.LastID, g.EntriesRead, g.Pending())
		g.EachPending(MinID, func(p Pending) bool {
			fmt.Fprint(&b, p.ID, p.DeliveredMillis, p.Deliveries, " ")
			return true
		})
		for _, c := range g.Consumers() {
			fmt.Fprintln(&b, c.Name, c.SeenMillis, c.ActiveMillis, c.Pending())
			g.EachPendingOf(c, MinID, func(p Pending) bool {
				fmt.Fprint(&b, p.ID, " ")
				return true
			})
		}
	}
	return b.String()
}

func TestIDsOfNewEntries(t *testing.T) {
	var s Stream
	if id, ok := s.NextID(1000); id != (ID{1000, 0}) || !ok {
		t.Error("first:", id, ok)
	}
	s.SetID(ID{1000, 7}, -1, ID{})
	for now, want := range map[int64]ID{999: {1000, 8}, 1000: {1000, 8}, 1001: {1001, 0}} {
		if id, ok := s.NextID(now); id != want || !ok {
			t.Errorf("at %d: %v %v, want %v", now, id, ok, want)
		}
	}
	if id, ok := s.NextSeq(1000); id != (ID{1000, 8}) || !ok {
		t.Error("same millisecond:", id, ok)
	}
	if id, ok := s.NextSeq(900); id != (ID{900, 0}) || !ok {
		t.Error("another millisecond:", id, ok)
	}
	s.SetID(MaxID, -1, ID{})
	if _, ok := s.NextID(5); ok {
		t.Error("there is an ID after the last")
	}
	if _, ok := s.NextSeq(MaxID.Millis); ok {
		t.Error("there is a sequence number after the last")
	}
	for _, id := range []ID{{}, {1, 1}, MaxID} {
		if err := s.Add(id, pairs("a", "b"), DefaultLimits); err != ErrSmallID {
			t.Errorf("add %v: %v", id, err)
		}
	}
}

// The node counts of Redis 8.0.6's radix tree for such IDs.
func TestRadixNodes(t *testing.T) {
	for _, c := range []struct {
		ids  []ID
		want int
	}{
		{nil, 1},
		{[]ID{{1, 1}}, 2},
		{[]ID{{1, 1}, {1, 2}}, 4},
		{[]ID{{1, 1}, {2, 1}}, 6},
		{[]ID{{1, 1}, {1, 256}, {2, 1}}, 10},
	} {
		var s Stream
		for _, id := range c.ids {
			s.blocks = append(s.blocks, block{id: id})
		}
		if got := s.RadixNodes(); got != c.want {
			t.Errorf("%v: %d nodes, want %d", c.ids, got, c.want)
		}
	}
}

// modelEntry and model: a stream in its simplest form, without regard to speed.
type modelEntry struct {
	id   ID
	text string
}

type model struct{ entries []modelEntry }

func (m *model) index(id ID) int {
	return slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.id == id })
}

func (m *model) between(start, end ID) (out []string) {
	for _, e := range m.entries {
		if e.id.Compare(start) >= 0 && e.id.Compare(end) <= 0 {
			out = append(out, e.text)
		}
	}
	return out
}

func TestAgainstModel(t *testing.T) {
	for _, lim := range []Limits{DefaultLimits, {MaxBlockBytes: 300}, {MaxBlockEntries: 4}, {}} {
		t.Run(fmt.Sprint(lim), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			s, m := &Stream{}, &model{}
			did := map[string]int{}
			image, then := &Stream{}, contents(&Stream{}) // of what was in the stream some steps ago
			millis := uint64(1)
			anyID := func() ID {
				if len(m.entries) > 0 && rnd.IntN(3) > 0 {
					return m.entries[rnd.IntN(len(m.entries))].id
				}
				return ID{rnd.Uint64N(millis + 2), rnd.Uint64N(4)}
			}
			for step := range 1500 {
				switch op := rnd.IntN(10); {
				case op < 5:
					if rnd.IntN(2) == 0 {
						millis += rnd.Uint64N(500)
					}
					id := ID{millis, rnd.Uint64N(1 << rnd.IntN(20))}
					words, text := []string{}, id.String()
					for i := range 1 + rnd.IntN(3) {
						f, v := fmt.Sprint("field", i), strconv.Itoa(rnd.IntN(1<<rnd.IntN(30)))
						if rnd.IntN(4) == 0 {
							f, v = strconv.Itoa(i), strings.Repeat("x", rnd.IntN(100))
						}
						words = append(words, f, v)
						text += fmt.Sprintf(" %s=%s", f, v)
					}
					err := s.Add(id, pairs(words...), lim)
					if want := id.Compare(s.last) <= 0; want != (err != nil) && err != nil {
						t.Fatalf("step %d: add %v: %v", step, id, err)
					}
					if err == nil {
						m.entries = append(m.entries, modelEntry{id, text})
						did["add"]++
					}
				case op < 7:
					id := anyID()
					i := m.index(id)
					if s.Exists(id) != (i >= 0) || s.Delete(id) != (i >= 0) {
						t.Fatalf("step %d: delete %v", step, id)
					}
					if i >= 0 {
						m.entries = slices.Delete(m.entries, i, i+1)
						did["delete"]++
					}
				case op < 8 && rnd.IntN(10) == 0:
					did["trim"]++
					trim(t, step, rnd, s, m, anyID())
				case op < 9:
					start, end := anyID(), anyID()
					want := m.between(start, end)
					if got := entries(s, start, end, false); !slices.Equal(got, want) {
						t.Fatalf("step %d: from %v to %v: %v, want %v", step, start, end, got, want)
					}
					slices.Reverse(want)
					if got := entries(s, start, end, true); !slices.Equal(got, want) {
						t.Fatalf("step %d: from %v back to %v: %v, want %v", step, end, start, got, want)
					}
					did["range"]++
				default:
					clone := s.Clone()
					s = &clone
				}
				if err := s.Check(); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				if got := contents(image); got != then {
					t.Fatalf("step %d: the image has changed\n%s\n%s", step, got, then)
				}
				if step%7 == 0 {
					image, then = s.Image(), contents(s)
				}
				if s.Len() != len(m.entries) || len(m.entries) > 0 && s.LastEntryID() != m.entries[len(m.entries)-1].id {
					t.Fatalf("step %d: %d entries to %v, want %d", step, s.Len(), s.LastEntryID(), len(m.entries))
				}
			}
			for _, op := range []string{"add", "delete", "trim", "range"} {
				if did[op] < 5 {
					t.Errorf("only %d × %s: the test did no work", did[op], op)
				}
			}
		})
	}
}

// trim trims at random and compares. An exact trim removes all that it must, a trim of whole blocks a part of that.
func trim(t *testing.T, step int, rnd *rand.Rand, s *Stream, m *model, minID ID) {
	t.Helper()
	how := Trim{MaxLen: rnd.IntN(len(m.entries) + 2), MinID: minID, ByID: rnd.IntN(2) == 0, Whole: rnd.IntN(2) == 0}
	want := max(0, len(m.entries)-how.MaxLen)
	if how.ByID {
		want = slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.id.Compare(minID) >= 0 })
		if want < 0 {
			want = len(m.entries)
		}
	}
	if how.Whole {
		how.Limit = rnd.IntN(20)
	}
	got := s.Trim(how)
	if got > want || !how.Whole && got != want || how.Limit > 0 && got > how.Limit {
		t.Fatalf("step %d: %+v removed %d, want %d", step, how, got, want)
	}
	m.entries = m.entries[got:]
}

func TestBlocksShareFields(t *testing.T) {
	var s Stream
	const n = 10_000
	for i := range n {
		s.Add(ID{uint64(1_700_000_000_000 + i), 0}, pairs("sensor-id", "1234", "temperature", "19.8"), DefaultLimits)
	}
	if per := float64(s.MemoryUsage()) / n; per > 25 {
		t.Errorf("%.1f bytes an entry", per)
	}
	if s.Blocks() != n/100 {
		t.Errorf("%d blocks", s.Blocks())
	}
}
