package set

// Sets and their algebra against maps, and against Redis's encodings, order and DUMP.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func of(lim Limits, members ...string) *Set {
	if len(members) == 0 {
		return &Set{}
	}
	s := New([]byte(members[0]), len(members), lim)
	for _, m := range members {
		s.Add([]byte(m), lim)
	}
	return &s
}

func members(s *Set) (out []string) {
	for it := s.Iter(); it.Next(); {
		out = append(out, string(it.Member()))
	}
	return out
}

func numbers(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

func TestEncodingsAsRedis(t *testing.T) {
	lim := Limits{MaxIntset: 5, MaxPacked: 3, MaxPackedBytes: 5}
	for _, c := range []struct {
		name string
		make func() *Set
		want string
	}{
		{"integers", func() *Set { return of(lim, "3", "1", "2") }, "intset"},
		{"a number that no int64 is", func() *Set { return of(lim, "18446744073709551615") }, "hashtable"},
		{"as many integers as may be", func() *Set { return of(lim, numbers(0, 5)...) }, "intset"},
		{"one by one, one more", func() *Set {
			s := &Set{}
			for _, n := range numbers(0, 6) {
				s.Add([]byte(n), lim)
			}
			return s
		}, "hashtable"},
		{"integers in one command, more than may be", func() *Set { return of(lim, "1", "1", "1", "1", "1", "1") }, "hashtable"},
		{"strings", func() *Set { return of(lim, "a", "b", "c") }, "listpack"},
		{"one string more", func() *Set {
			s := of(lim, "a", "b", "c")
			s.Add([]byte("d"), lim)
			return s
		}, "hashtable"},
		{"strings in one command, too many although the same", func() *Set { return of(lim, "a", "a", "a", "a") }, "hashtable"},
		{"a string too long", func() *Set { return of(lim, "abcdef") }, "hashtable"},
		{"a string among few integers", func() *Set { return of(lim, "1", "2", "a") }, "listpack"},
		{"a string among too many integers", func() *Set {
			s := of(lim, "1", "2", "3")
			s.Add([]byte("a"), lim)
			return s
		}, "hashtable"},
		{"a string among integers too long for a listpack", func() *Set { return of(lim, "-12345", "a") }, "hashtable"},
		{"a command with many, for an intset", func() *Set { s := of(lim, "1"); s.Prepare(6, lim); return s }, "hashtable"},
		{"a command with many, for a listpack", func() *Set { s := of(lim, "a"); s.Prepare(4, lim); return s }, "hashtable"},
		{"a listpack of integers does not go back", func() *Set {
			s := of(lim, "1", "a")
			s.Remove([]byte("a"))
			return s
		}, "listpack"},
		{"an intersection of tables that are integers", func() *Set {
			a, b := of(lim, "a", "abcdef", "7", "8"), of(lim, "b", "ghijkl", "7", "8")
			s := InterStore([]*Set{a, b}, lim)
			return &s
		}, "intset"},
		{"an intersection of listpacks", func() *Set {
			s := InterStore([]*Set{of(lim, "a", "b", "1"), of(lim, "b", "1", "c")}, lim)
			return &s
		}, "listpack"},
		{"an intersection of listpacks that is integers", func() *Set {
			s := InterStore([]*Set{of(lim, "a", "1", "2"), of(lim, "1", "b", "2")}, lim)
			return &s
		}, "intset"},
		{"an intersection of listpacks that is too long by now", func() *Set {
			s := InterStore([]*Set{of(lim, "a", "b", "c")}, Limits{MaxIntset: 5, MaxPacked: 2, MaxPackedBytes: 5})
			return &s
		}, "hashtable"},
		{"an intersection of listpacks whose members are too long by now", func() *Set {
			s := InterStore([]*Set{of(lim, "a", "b", "abc")}, Limits{MaxIntset: 5, MaxPacked: 3, MaxPackedBytes: 2})
			return &s
		}, "hashtable"},
		{"a union of integers and strings", func() *Set {
			s := Union([]*Set{of(lim, "1"), nil, of(lim, "a")}, false, lim)
			return &s
		}, "listpack"},
		{"the same to be replied", func() *Set {
			s := Union([]*Set{of(lim, "1"), nil, of(lim, "a")}, true, lim)
			return &s
		}, "hashtable"},
		{"the rest of a table after most of it was popped", func() *Set {
			s := of(lim, "a", "abcdef", "c", "d", "e", "f", "g")
			s.Remove([]byte("abcdef"))
			s.Pop(5, rand.New(rand.NewPCG(1, 1)).Uint64, lim, func([]byte) {})
			return s
		}, "listpack"},
	} {
		s := c.make()
		if got := s.Encoding(); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, members(s))
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOrders(t *testing.T) {
	if got := members(of(DefaultLimits, "3", "-70000", "1", "9000000000", "2")); !slices.Equal(got, []string{"-70000", "1", "2", "3", "9000000000"}) {
		t.Errorf("an intset ascends: %v", got)
	}
	s := of(DefaultLimits, "3", "1", "2")
	s.Add([]byte("x"), DefaultLimits)
	s.Add([]byte("0"), DefaultLimits)
	if got := members(s); !slices.Equal(got, []string{"1", "2", "3", "x", "0"}) {
		t.Errorf("a listpack keeps the order of adding: %v", got)
	}
}

func TestAgainstModel(t *testing.T) {
	for _, c := range []struct {
		name      string
		lim       Limits
		universe  int
		encodings string
	}{
		{"small", DefaultLimits, 50, "intset listpack"},
		{"growing", Limits{MaxIntset: 20, MaxPacked: 20, MaxPackedBytes: 64}, 200, "hashtable intset listpack"},
		{"large", Limits{}, 1000, "hashtable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			did, seen := map[string]int{}, map[string]bool{}
			var s *Set
			var model map[string]bool
			for step := range 9000 {
				// A new set from time to time: integers only, of growing width, or anything.
				if step%600 == 0 {
					s, model = &Set{}, map[string]bool{}
				}
				n := rnd.IntN(c.universe)
				member := strconv.Itoa((n - c.universe/2) << (step / 600 * 4 % 50))
				if step/600%3 == 2 && n%2 == 0 {
					member = fmt.Sprint("m", n)
				}
				switch op := rnd.IntN(10); {
				case op < 6:
					if got := s.Add([]byte(member), c.lim); got == model[member] {
						t.Fatalf("step %d: add %q: %v", step, member, got)
					}
					model[member] = true
					did["add"]++
				case op < 8:
					if got := s.Remove([]byte(member)); got != model[member] {
						t.Fatalf("step %d: remove %q: %v", step, member, got)
					}
					delete(model, member)
					did["remove"]++
				case op < 9 && rnd.IntN(5) == 0:
					count := rnd.IntN(10)
					if rnd.IntN(3) == 0 {
						count = rnd.IntN(len(model) + 2)
					}
					n := len(model)
					s.Pop(count, rnd.Uint64, c.lim, func(m []byte) {
						if !model[string(m)] {
							t.Fatalf("step %d: popped %q, which is not there", step, m)
						}
						delete(model, string(m))
						did["pop"]++
					})
					if n-len(model) != min(n, count) {
						t.Fatalf("step %d: popped %d of %d, asked for %d", step, n-len(model), n, count)
					}
				default:
					clone := s.Clone()
					s = &clone
				}
				seen[s.Encoding()] = true
				if err := s.Check(); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				if s.Contains([]byte(member)) != model[member] || s.Len() != len(model) {
					t.Fatalf("step %d: %q: %v; %d members, want %d", step, member, s.Contains([]byte(member)), s.Len(), len(model))
				}
				if step%20 == 0 {
					got := members(s)
					slices.Sort(got)
					if want := slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
						t.Fatalf("step %d: %v, want %v", step, got, want)
					}
				}
			}
			for _, op := range []string{"add", "remove", "pop"} {
				if did[op] < 100 {
					t.Errorf("only %d × %s: the test did no work", did[op], op)
				}
			}
			for _, e := range strings.Fields(c.encodings) {
				if !seen[e] {
					t.Errorf("was never %s", e)
				}
			}
		})
	}
}

func TestAlgebraAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	lim := Limits{MaxIntset: 30, MaxPacked: 30, MaxPackedBytes: 64}
	did := map[string]int{}
	for round := range 1500 {
		sets := make([]*Set, 1+rnd.IntN(4))
		models := make([]map[string]bool, len(sets))
		universe := 1 + rnd.IntN(60)
		for i := range sets {
			if i > 0 && rnd.IntN(12) == 0 {
				sets[i], models[i] = sets[0], models[0]
				continue
			}
			models[i] = map[string]bool{}
			if rnd.IntN(10) == 0 {
				continue
			}
			sets[i] = &Set{}
			strings := rnd.IntN(2) == 0
			for range 1 + rnd.IntN(60) {
				m := strconv.Itoa(rnd.IntN(universe))
				if strings && rnd.IntN(3) == 0 {
					m = "m" + m
				}
				sets[i].Add([]byte(m), lim)
				models[i][m] = true
			}
		}
		union, inter, diff := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, m := range models {
			maps.Copy(union, m)
		}
		for m := range models[0] {
			inAll, inOther := true, false
			for _, o := range models[1:] {
				inAll = inAll && o[m]
				inOther = inOther || o[m]
			}
			if inAll {
				inter[m] = true
			}
			if !inOther {
				diff[m] = true
			}
		}
		check := func(name string, got *Set, want map[string]bool) {
			t.Helper()
			if err := got.Check(); err != nil {
				t.Fatalf("round %d: %s: %v", round, name, err)
			}
			g := members(got)
			slices.Sort(g)
			if !slices.Equal(g, slices.Sorted(maps.Keys(want))) {
				t.Fatalf("round %d: %s: %v, want %v", round, name, g, want)
			}
			did[name] += len(g)
		}
		for _, reply := range []bool{false, true} {
			u, d := Union(sets, reply, lim), Diff(sets, reply, lim)
			check("union", &u, union)
			check("difference", &d, diff)
		}
		stored := InterStore(sets, lim)
		check("intersection", &stored, inter)
		if n := Inter(sets, 0, nil); n != len(inter) {
			t.Fatalf("round %d: intersection of %d, want %d", round, n, len(inter))
		}
		if n := Inter(sets, 2, nil); n != min(2, len(inter)) {
			t.Fatalf("round %d: intersection limited to %d", round, n)
		}
	}
	for _, op := range []string{"union", "intersection", "difference"} {
		if did[op] < 500 {
			t.Errorf("%s had only %d members: the test did no work", op, did[op])
		}
	}
}

func TestRandomMembers(t *testing.T) {
	next := rand.New(rand.NewPCG(7, 7)).Uint64
	for _, s := range []*Set{of(DefaultLimits, numbers(0, 40)...), of(Limits{1, 99, 9}, numbers(0, 40)...), of(Limits{}, numbers(0, 40)...)} {
		drawn, sampled := map[string]int{}, map[string]int{}
		for range 1000 {
			s.Draw(8, next, func(it *Iter) { drawn[string(it.Member())]++ })
			n := 0
			s.Sample(8, next, func(it *Iter) { sampled[string(it.Member())]++; n++ })
			if n != 8 {
				t.Fatalf("a sample of 8 has %d", n)
			}
		}
		for _, m := range numbers(0, 40) {
			if drawn[m] < 130 || drawn[m] > 280 || sampled[m] < 130 || sampled[m] > 280 {
				t.Errorf("%s: %s drawn %d times, sampled %d times, expected about 200", s.Encoding(), m, drawn[m], sampled[m])
			}
		}
		scanned := map[string]bool{}
		for c, first := uint64(0), true; first || c != 0; first = false {
			c = s.Scan(c, 3, func(it *Iter) { scanned[string(it.Member())] = true })
		}
		if len(scanned) != 40 {
			t.Errorf("%s: %d of 40 scanned", s.Encoding(), len(scanned))
		}
	}
}

// The intset that Redis 8.0.6 dumps for 1, 2 and -3, and with 70000 added.
func TestSmallIsWhatDumpWrites(t *testing.T) {
	s := of(DefaultLimits, "1", "2", "-3")
	if got, want := fmt.Sprintf("%x", s.Small()), "0200000003000000"+"fdff"+"0100"+"0200"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Add([]byte("70000"), DefaultLimits)
	if got, want := fmt.Sprintf("%x", s.Small()), "0400000004000000"+"fdffffff"+"01000000"+"02000000"+"70110100"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s.enlarge(); s.Small() != nil {
		t.Error("a large set has a small form")
	}
}
