package prefix

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Of finds the longest prefix of a key, for any set of prefixes: compared with trying each.
func TestOf(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	word := func() string {
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = "ab:"[rng.IntN(3)]
		}
		return string(b)
	}
	found := 0
	for range 300 {
		var s Set
		var names []string
		for range rng.IntN(20) {
			if w := word(); w != "" {
				names = append(names, w)
			}
		}
		s.Configure(names)
		for range 50 {
			key, want := word()+word(), ""
			for _, n := range names {
				if strings.HasPrefix(key, n) && len(n) > len(want) {
					want = n
				}
			}
			got := ""
			if p := s.Of([]byte(key)); p != nil {
				got = p.Name
				found++
			}
			if got != want {
				t.Fatalf("%q of %q: %q, want %q", key, names, got, want)
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d were found", found)
	}
}

// A prefix that stays keeps its counters when others are added or removed.
func TestConfigure(t *testing.T) {
	var s Set
	count := func() (n string) {
		s.Each(func(p *Prefix) {
			g, r := p.Limiters.Sum()
			n += fmt.Sprint(p.Name, " ", g, " ", r, ",")
		})
		return n
	}
	for i, step := range []struct {
		names string
		want  string
	}{
		{"", ""}, {"a:", "a: 1 1,"}, {"a: a:b a:", "a: 1 1,a:b 1 1,"}, {"a:b c", "a:b 2 2,c 0 0,"}, {"a: a:b", "a: 0 0,a:b 3 3,"}, {"", ""},
	} {
		s.Configure(strings.Fields(step.names))
		s.Limiter([]byte("a:b1"), int64(i), true)
		s.Limiter([]byte("a:b1"), -1, false)
		if got := count(); got != step.want {
			t.Errorf("%q: %q, want %q", step.names, got, step.want)
		}
	}
	if g, r := s.All.Limiters.Sum(); g != 6 || r != 6 {
		t.Errorf("of all %d and %d", g, r)
	}
}

func BenchmarkOf(b *testing.B) {
	for _, n := range []int{0, 1, Max} {
		var s Set
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("tenant:", i, ":"))
		}
		s.Configure(names)
		key := []byte("tenant:500:user:42")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s.Of(key)
			}
		})
	}
}
