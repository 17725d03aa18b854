package list

// Lists against a slice, and against Redis's encodings and DUMP.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/packed"
)

func values(l *List) (out []string) {
	for it := l.Iter(0, false); it.Next(); {
		out = append(out, string(it.Value()))
	}
	return out
}

func of(n, size int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = bytes.Repeat([]byte{'a' + byte(i%26)}, size)
	}
	return out
}

func TestEncodingsAsRedis(t *testing.T) {
	lim := Limits{NodeSize: 4}
	for _, c := range []struct {
		name string
		make func(l *List)
		want string
	}{
		{"as many as may be", func(l *List) { l.Push(of(4, 1), false, lim) }, "listpack"},
		{"one more", func(l *List) { l.Push(of(5, 1), false, lim) }, "quicklist"},
		{"one more later", func(l *List) { l.Push(of(4, 1), false, lim); l.Push(of(1, 1), true, lim) }, "quicklist"},
		{"an element too long for any node", func(l *List) { l.Push(of(1, 8190), false, lim) }, "quicklist"},
		{"short again, but not by half", func(l *List) { l.Push(of(5, 1), false, lim); l.Remove(0, 2, lim) }, "quicklist"},
		{"shorter than half, in one node", func(l *List) { l.Push(of(5, 1), false, lim); l.Remove(2, 3, lim) }, "listpack"},
		{"shorter than half, in two nodes", func(l *List) { l.Push(of(5, 1), false, lim); l.Remove(1, 3, lim) }, "quicklist"},
		{"trimmed", func(l *List) { l.Push(of(9, 1), false, lim); l.Trim(0, 2, lim) }, "listpack"},
		{"values removed", func(l *List) {
			l.Push(of(5, 1), false, lim)
			for _, v := range of(3, 1) {
				l.RemoveValue(v, 0, false, lim)
			}
		}, "quicklist"},
		{"setting prepares for one more, as Redis does", func(l *List) {
			l.Push(of(4, 1), false, lim)
			l.Set(9, []byte("x"), lim)
		}, "quicklist"},
		{"inserting beside what is not there, too", func(l *List) {
			l.Push(of(4, 1), false, lim)
			l.Insert([]byte("missing"), []byte("x"), true, lim)
		}, "quicklist"},
		{"made as a whole", func(l *List) { *l = Of(of(4, 1), lim) }, "listpack"},
		{"made as a whole, too long", func(l *List) { *l = Of(of(5, 1), lim) }, "quicklist"},
		{"8 KB", func(l *List) { l.Push(of(1, 8185), false, DefaultLimits) }, "listpack"},
		{"more than 8 KB", func(l *List) { l.Push(of(1, 8186), false, DefaultLimits) }, "quicklist"},
	} {
		var l List
		c.make(&l)
		if got := l.Encoding(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if err := l.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAgainstModel(t *testing.T) {
	for _, c := range []struct {
		name      string
		lim       Limits
		longest   int
		encodings string
	}{
		{"listpack", DefaultLimits, 20, "listpack"},
		{"nodes of 3", Limits{NodeSize: 3}, 20, "listpack quicklist"},
		{"nodes of 4 KB", Limits{NodeSize: -1}, 3000, "listpack quicklist"},
		{"large elements", Limits{NodeSize: -1}, 9000, "quicklist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			l, model := &List{}, []string(nil)
			var image List // of what was in the list some steps ago
			var then []string
			did, seen := map[string]int{}, map[string]bool{}
			value := func() []byte {
				if rnd.IntN(3) == 0 {
					return strconv.AppendInt(nil, int64(rnd.IntN(8)), 10)
				}
				return bytes.Repeat([]byte{'a' + byte(rnd.IntN(3))}, rnd.IntN(c.longest))
			}
			for step := range 2500 {
				// Grow for a while, then shrink.
				grow := step/250%2 == 0
				n := len(model)
				at := 0
				if n > 0 {
					at = rnd.IntN(n)
				}
				switch op := rnd.IntN(10); {
				case op < 3 && (grow || n < 3):
					vs := [][]byte{value(), value()}[:1+rnd.IntN(2)]
					head := rnd.IntN(2) == 0
					l.Push(vs, head, c.lim)
					for _, v := range vs {
						if head {
							model = slices.Insert(model, 0, string(v))
						} else {
							model = append(model, string(v))
						}
					}
					did["push"]++
				case op < 5 && n > 0 && (grow || rnd.IntN(3) == 0):
					pivot, v, after := model[at], value(), rnd.IntN(2) == 0
					if !l.Insert([]byte(pivot), v, after, c.lim) {
						t.Fatalf("step %d: pivot %d not found", step, at)
					}
					i := slices.Index(model, pivot)
					if after {
						i++
					}
					model = slices.Insert(model, i, string(v))
					did["insert"]++
				case op < 7 && n > 0:
					v := value()
					index := at
					if rnd.IntN(2) == 0 {
						index = at - n
					}
					if !l.Set(index, v, c.lim) || l.Set(n, v, c.lim) || l.Set(-n-1, v, c.lim) {
						t.Fatalf("step %d: set %d of %d", step, index, n)
					}
					model[at] = string(v)
					did["set"]++
				case op < 8 && n > 0:
					v, count, tail := model[at], rnd.IntN(3), rnd.IntN(2) == 0
					want := 0
					if tail {
						slices.Reverse(model)
					}
					model = slices.DeleteFunc(model, func(s string) bool {
						if s == v && (count == 0 || want < count) {
							want++
							return true
						}
						return false
					})
					if tail {
						slices.Reverse(model)
					}
					if got := l.RemoveValue([]byte(v), count, tail, c.lim); got != want {
						t.Fatalf("step %d: removed %d, want %d", step, got, want)
					}
					did["remove value"]++
				case op < 9 && n > 0 && !grow:
					k := 1 + rnd.IntN(5)
					if rnd.IntN(20) == 0 {
						l.Trim(at, k, c.lim)
						model = slices.Clone(model[at:min(n, at+k)])
					} else {
						l.Remove(at, k, c.lim)
						model = slices.Delete(model, at, min(n, at+k))
					}
					did["remove"]++
				case n > 0 && rnd.IntN(2) == 0:
					var other List
					other.Push([][]byte{[]byte("other")}, false, c.lim)
					head := rnd.IntN(2) == 0
					Move(&other, l, true, head, c.lim)
					Move(l, l, head, !head, c.lim)
					if head {
						model = append(model, "other")
					} else {
						model = slices.Insert(model, 0, "other")
					}
					did["move"]++
				default:
					clone := l.Clone()
					l = &clone
				}
				seen[l.Encoding()] = true
				compare(t, step, l, model, rnd)
				compare(t, step, &image, then, rnd)
				if step%7 == 0 && l.Encoding() == "quicklist" {
					image, then = l.Image(), slices.Clone(model)
				}
			}
			for _, op := range []string{"push", "insert", "set", "remove value", "remove", "move"} {
				if did[op] < 50 {
					t.Errorf("only %d × %s: the test did no work", did[op], op)
				}
			}
			for _, e := range strings.Fields(c.encodings) {
				if !seen[e] {
					t.Errorf("was never a %s", e)
				}
			}
		})
	}
}

func compare(t *testing.T, step int, l *List, model []string, rnd *rand.Rand) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	if got := values(l); !slices.Equal(got, model) || l.Len() != len(model) {
		t.Fatalf("step %d: %d elements, want %d\n%.200q\n%.200q", step, len(got), len(model), got, model)
	}
	if len(model) == 0 {
		return
	}
	at := rnd.IntN(len(model))
	var s packed.Scratch
	for _, index := range []int{at, at - len(model)} {
		if v, ok := l.Index(index, &s); !ok || string(v) != model[at] {
			t.Fatalf("step %d: index %d is %q, %v", step, index, v, ok)
		}
	}
	for _, index := range []int{len(model), -len(model) - 1} {
		if _, ok := l.Index(index, &s); ok {
			t.Fatalf("step %d: there is an index %d", step, index)
		}
	}
	i := at
	for it := l.Iter(at, true); it.Next(); i-- {
		if string(it.Value()) != model[i] || !it.Equal([]byte(model[i])) {
			t.Fatalf("step %d: backwards at %d: %q, want %q", step, i, it.Value(), model[i])
		}
	}
	if i != -1 {
		t.Fatalf("step %d: backwards from %d ends at %d", step, at, i)
	}
}

func TestQueue(t *testing.T) {
	var l List
	const n = 50_000
	var s packed.Scratch
	for i := range n {
		l.Push([][]byte{fmt.Append(nil, "job:", i)}, false, DefaultLimits)
	}
	if per := float64(l.MemoryUsage()) / n; per > 14 {
		t.Errorf("%.1f bytes for each element of up to 9", per)
	}
	for i := range n {
		if v, _ := l.Index(0, &s); string(v) != fmt.Sprint("job:", i) {
			t.Fatalf("%d: %q", i, v)
		}
		l.Remove(0, 1, DefaultLimits)
	}
	if l.Len() != 0 || l.MemoryUsage() > 500 {
		t.Errorf("%d elements, %d bytes remain", l.Len(), l.MemoryUsage())
	}
}

func TestNodesAreWhatDumpWrites(t *testing.T) {
	var l List
	l.Push([][]byte{[]byte("a"), []byte("b"), bytes.Repeat([]byte("x"), 9000), []byte("c")}, false, DefaultLimits)
	var got []string
	l.Nodes(func(data []byte, plain bool) {
		if plain {
			got = append(got, fmt.Sprint("plain ", len(data)))
		} else {
			got = append(got, fmt.Sprint("packed ", packed.Count(data)))
		}
	})
	if want := []string{"packed 2", "plain 9000", "packed 1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l = List{}
	l.Push([][]byte{[]byte("a")}, false, DefaultLimits)
	l.Nodes(func(data []byte, plain bool) {
		if plain || packed.Count(data) != 1 {
			t.Errorf("a listpack: %x, plain %v", data, plain)
		}
	})
}
