package limiter

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// taken is a limiter with grants of cost 1 that were just taken.
func taken(t testing.TB, words string, now int64, lease int64, ids ...string) *Named {
	t.Helper()
	n := NewNamed(New(nil, rulesOf(t, words), false))
	for _, id := range ids {
		p, d, err := n.Decide(n.State(), now, Call{Cost: 1, Lease: lease > 0})
		if err != nil || d.Limited {
			t.Fatalf("%s: %+v %v", words, d, err)
		}
		n.SetState(p)
		n.Open([]byte(id), now, lease, &d)
	}
	return n
}

// A named grant takes at most 64 bytes beside its name, measured on the heap and as counted by MemoryUsage.
func TestNamedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	for _, words := range []string{"GCRA 1000000 60000", "FIXED 1000000 60000", "CONC 1000000", "TOTAL 1000000", "CAL 1000000 MONTH"} {
		for _, format := range []string{"%08d", "grant:%010d", "01234567-89ab-cdef-%018d"} {
			const many = 50_000
			n := NewNamed(New(nil, rulesOf(t, words), false))
			ids := make([]string, many)
			for i := range ids {
				ids[i] = fmt.Sprintf(format, i)
			}
			live := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := live()
			for i, id := range ids {
				p, d, err := n.Decide(n.State(), start+int64(i), Call{Cost: 1, Lease: true})
				if err != nil || d.Limited {
					t.Fatal(d, err)
				}
				n.SetState(p)
				n.Open([]byte(id), start+int64(i), int64(60_000_000+i%1000*1000), &d)
			}
			perGrant := float64(live()-before) / many
			beside := perGrant - float64(len(ids[0]))
			counted := float64(n.MemoryUsage()) / many
			t.Logf("%-20s id of %2d: %.1f bytes beside it, %.1f in all, counted %.1f", words, len(ids[0]), beside, perGrant, counted)
			if beside > 64 {
				t.Errorf("%s with an id of %d: %.1f bytes beside it", words, len(ids[0]), beside)
			}
			if counted < perGrant*0.9 || counted > perGrant*1.1 {
				t.Errorf("%s: counted %.1f bytes of %.1f", words, counted, perGrant)
			}
			runtime.KeepAlive(n)
		}
	}
}

// In files, a limiter without grants takes as many bytes as before grants existed.
func TestSizesWithoutGrants(t *testing.T) {
	for words, size := range map[string]int{
		"GCRA 100 60000": 13 + 6 + 8, "GCRA 7 60000": 13 + 6 + 9, "FIXED 100 1000": 13 + 5 + 14, "WINDOW 100 1000": 13 + 5 + 20,
		"LOG 100 1000": 13 + 5 + 34, "GCRA 100 1000 FIXED 9999 60000": 13 + 5 + 7 + 8 + 14,
		"CONC 5": 13 + 3 + 6, "TOTAL 5": 13 + 3 + 6, "CAL 5 DAY": 13 + 3 + 3 + 20,
	} {
		if got := len(AppendWide(nil, New(nil, rulesOf(t, words), false))); got != size {
			t.Errorf("%s takes %d bytes, want %d", words, got, size)
		}
	}
	if size := unsafe.Sizeof(Rule{}); size != 32 {
		t.Errorf("a rule takes %d bytes", size)
	}
	buf := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() {
		p := New(buf, []Rule{{Algorithm: GCRA, Count: 100, PeriodMicros: 1000, Burst: 100}}, false)
		p, _, _ = Take(p, start, 1, Try)
		_ = FullAt(p)
	}); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}

// Limiters without anything that came with grants are in version 1 of files.
func TestVersion(t *testing.T) {
	for words, version := range map[string]int{"GCRA 1 1 LOG 1 1 WINDOW 1 1 FIXED 1 1": 1, "CAL 1 DAY": 2, "GCRA 1 1 CONC 1": 2, "TOTAL 1": 2} {
		if got := Version(New(nil, rulesOf(t, words), true)); got != version {
			t.Errorf("%s is of version %d", words, got)
		}
	}
	if got := Version(SetShadow(New(nil, rulesOf(t, "GCRA 1 1"), true), true)); got != 2 {
		t.Errorf("a shadow is of version %d", got)
	}
}

// When rules change under open grants, grants keep what they hold, and a bucket keeps its tokens.
func TestNamedChange(t *testing.T) {
	n := taken(t, "GCRA 10 1000", start, second, "a", "b", "c")
	n.Change(rulesOf(t, "GCRA 10 10000"), start+100_000) // 2 of the 3 tokens are in use, 200 ms were
	if s := Status(nil, n.State(), start+100_000, n)[0]; s.Available != 8 {
		t.Fatalf("%+v", s)
	}
	// The third one's is the last to come back: in 2 s now.
	if back, ok, err := n.Close([]byte("c"), start+100_000, 0); back != 1 || !ok || err != nil {
		t.Fatal(back, ok, err)
	}
	n.Change(rulesOf(t, "CONC 5 TOTAL 9"), start+100_000)
	for i, want := range []int64{3, 7} {
		if s := Status(nil, n.State(), start+100_000, n)[i]; s.Available != want {
			t.Errorf("rule %d: %+v", i, s)
		}
	}
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
	n.Change(rulesOf(t, "FIXED 9 1000 CONC 1"), start+100_000)
	if s := Status(nil, n.State(), start+100_000, n)[1]; s.Available != -1 {
		t.Errorf("lowered below what is held: %+v", s)
	}
	if n.Ended(start+second, 10) != 2 || n.Len() != 0 {
		t.Errorf("%d are open", n.Len())
	}
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
}

// Without a lease a grant is open until the windows that it was taken from are over.
func TestWindowsOfGrants(t *testing.T) {
	for words, millis := range map[string]int64{
		"FIXED 9 1000": 1000, "LOG 9 1000": 1000, "WINDOW 9 1000": 2000, "GCRA 10 1000": 100, "GCRA 10 1000 FIXED 9 5000": 5000,
		"CAL 9 HOUR": 2_800_000, "CAL 9 DAY": 6_400_000, "TOTAL 9": 0, "TOTAL 9 FIXED 9 1000": 0,
	} {
		n := taken(t, words, start, 0, "a")
		want := int64(0)
		if millis != 0 {
			want = start/1000 + millis
		}
		if got := n.NextDue(); got != want {
			t.Errorf("%s: open until +%d, want +%d", words, got-start/1000, millis)
		}
	}
}

// Grants from outside are not trusted.
func TestRestoreGrants(t *testing.T) {
	n := taken(t, "GCRA 10 1000 CONC 5", start, second, "a")
	saved := n.AppendGrant(nil, []byte("a"))
	long := []byte(strings.Repeat("x", NameBytesMax+1))
	for what, bad := range map[string]error{
		"no name":     n.Restore(nil, saved),
		"a long name": n.Restore(long, saved),
		"cut off":     n.Restore([]byte("b"), saved[:len(saved)-1]),
		"nothing":     n.Restore([]byte("b"), saved[:5]),
		"more":        n.Restore([]byte("b"), append(saved[:len(saved):len(saved)], 1)),
		"an open end": n.Restore([]byte("b"), append(saved[:len(saved):len(saved)], 0x80)),
		"flags":       n.Restore([]byte("b"), with(saved, 0, 0xff)),
		"given":       n.SetGiven([]byte{1, 2}),
		"no given":    n.SetGiven(nil),
	} {
		if !errors.Is(bad, ErrGrant) {
			t.Errorf("%s: %v", what, bad)
		}
	}
	if err := n.Check(); err != nil || n.Len() != 1 {
		t.Error(err, n.Len())
	}
	if err := CheckPlain(n.State()); err == nil {
		t.Error("what nobody holds is plain")
	}
}

func with(p []byte, at int, b byte) []byte {
	p = append([]byte(nil), p...)
	p[at] = b
	return p
}

// FuzzGrants: bytes that pass as grants can be worked with.
func FuzzGrants(f *testing.F) {
	n := taken(f, "GCRA 10 1000 TOTAL 5", start, second, "a")
	f.Add(n.State(), n.AppendGiven(nil), n.AppendGrant(nil, []byte("a")), int64(start))
	n = taken(f, "FIXED 10 1000 WINDOW 3 9 CONC 9", start, second, "a")
	f.Add(n.State(), n.AppendGiven(nil), n.AppendGrant(nil, []byte("a")), int64(start+5))
	f.Fuzz(func(t *testing.T, p, given, saved []byte, now int64) {
		if Check(p) != nil || now < 0 || now > 1<<58 {
			return
		}
		n := NewNamed(append([]byte(nil), p...))
		if n.SetGiven(given) != nil || n.Restore([]byte("a"), saved) != nil || n.Restore([]byte("b"), saved) != nil || n.Check() != nil {
			return
		}
		n.Find([]byte("a"), now, 1000)
		Status(nil, n.State(), now, n)
		if _, _, err := n.Decide(append([]byte(nil), n.State()...), now, Call{Cost: 2, Mode: Peek}); err != nil && err != ErrCapacity {
			t.Fatal(err)
		}
		n.Close([]byte("a"), now, 7)
		n.Release(now, 1)
		n.Change([]Rule{{Algorithm: GCRA, Count: 7, PeriodMicros: 1000, Burst: 9}, {Algorithm: Conc, Count: 5}}, now)
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
		n.Close([]byte("b"), now, 0)
		n.Ended(now, 9)
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReleaseOfNothing: a release that gives nothing back, because too much is in use, changes nothing.
func TestReleaseOfNothing(t *testing.T) {
	const at = int64(1_700_000_000_000_000)
	n := NewNamed(New(nil, []Rule{{Algorithm: GCRA, Count: 10_000, Burst: 10_000, PeriodMicros: 1000}}, false))
	p, d, err := Decide(n.State(), at, Call{Cost: 3, Mode: Try})
	if err != nil || d.Taken != 3 {
		t.Fatal(d, err)
	}
	n.SetState(p)
	n.Open([]byte("a"), at, 1000, &d)
	state, given := bytes.Clone(n.State()), n.AppendGiven(nil)
	back, freed, err := n.Release(1, 1) // the clock went back
	if back != 0 || freed != nil || err != nil {
		t.Fatal(back, freed, err)
	}
	if !bytes.Equal(n.State(), state) || !bytes.Equal(n.AppendGiven(nil), given) {
		t.Error("the limiter is another one")
	}
}

// Change gives the limiter other rules, as the package's Change. Grants keep what they hold.
func (n *Named) Change(rules []Rule, now int64) {
	state := n.StateFor(rules, now)
	n.Rebase(rules, now)
	n.state = state
}
