package lock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// naive is a lock as a plain list, written from the meaning of the commands.
type naive struct {
	list    []Holder
	mode    Mode
	permits int64
	closed  int64
}

func (m *naive) at(owner string) int {
	return slices.IndexFunc(m.list, func(h Holder) bool { return string(h.Owner) == owner })
}

func (m *naive) lose(i int, now int64) {
	h := m.list[i]
	m.list = slices.Delete(m.list, i, i+1)
	end := h.UntilMicros
	if end == 0 {
		end = now
	}
	if h.DelayMicros > 0 {
		m.closed = max(m.closed, min(end, now)+h.DelayMicros)
	}
}

// settle ends what has run out.
func (m *naive) settle(now int64) (lost []int64) {
	for i := 0; i < len(m.list); {
		if h := m.list[i]; h.UntilMicros != 0 && h.UntilMicros <= now || h.UntilMicros == 0 && h.Session == 0 {
			lost = append(lost, h.Fence)
			m.lose(i, now)
		} else {
			i++
		}
	}
	if m.closed <= now {
		m.closed = 0
	}
	slices.Sort(lost)
	return lost
}

func (m *naive) acquire(a *Ask, now, fence int64) (int64, error) {
	if i := m.at(string(a.Owner)); i >= 0 {
		h := &m.list[i]
		switch {
		case m.mode == Alone && a.Mode == Shared:
			m.mode = Shared
		case m.mode == Permits && a.Mode == Permits && m.permits != a.Permits:
			return 0, ErrPermits
		case m.mode != a.Mode || h.Take != a.Take:
			return 0, ErrOtherwise
		}
		h.UntilMicros, h.DelayMicros, h.Session = a.UntilMicros, a.DelayMicros, a.Session
		return h.Fence, nil
	}
	if len(m.list) > 0 {
		taken := int64(0)
		for _, h := range m.list {
			taken += h.Take
		}
		switch {
		case m.mode != a.Mode, a.Mode == Alone:
			return 0, ErrRefused
		case m.permits != a.Permits:
			return 0, ErrPermits
		case a.Mode == Permits && taken+a.Take > m.permits:
			return 0, ErrRefused
		}
	}
	if a.Behind || m.closed > now {
		return 0, ErrRefused
	}
	m.mode, m.permits = a.Mode, a.Permits
	m.list = append(m.list, Holder{[]byte(string(a.Owner)), fence, a.UntilMicros, a.DelayMicros, a.Session, a.Take})
	return fence, nil
}

// picture is all that can be seen of either.
func (m *naive) picture() string {
	mode, permits := m.mode, m.permits
	if len(m.list) == 0 {
		mode, permits = Alone, 0
	}
	return fmt.Sprint(mode, permits, m.closed, fmt.Sprintf("%+v", m.list))
}

func pictureOf(l *Lock) string {
	var list []Holder
	l.Each(func(h Holder) bool {
		list = append(list, h)
		return true
	})
	return fmt.Sprint(l.Mode, l.Permits, l.ClosedMicros, fmt.Sprintf("%+v", list))
}

// stored is the lock after it was stored and read again, as the keyspace does.
func stored(l *Lock) *Lock {
	if p, ok := l.Append(nil); ok {
		n := new(Lock)
		n.Read(p)
		if at := l.DueMicros(); Due(p) != at || BoundIn(p) != l.Bound() {
			panic("the bytes tell another time than the lock")
		}
		return n
	}
	if l.large != nil {
		return l
	}
	return l.Large()
}

func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 12))
	did := map[string]int{}
	for range 60 {
		owners := 1 + rnd.IntN(40) // more than can be stored as bytes, or few
		l, m := new(Lock), &naive{}
		now, fence := int64(1_700_000_000_000_000), int64(1_700_000_000_000_000)
		for step := range 300 {
			owner := fmt.Sprint("owner", rnd.IntN(owners))
			until := now + 1 + rnd.Int64N(1000)
			session := rnd.Int64N(4)
			if rnd.IntN(4) == 0 {
				until = 0
			}
			delay := int64(0)
			if rnd.IntN(4) == 0 {
				delay = rnd.Int64N(500)
			}
			what, got, want := "", "", ""
			switch n := rnd.IntN(10); {
			case n < 5:
				a := Ask{Owner: []byte(owner), UntilMicros: until, DelayMicros: delay, Session: session, Take: 1,
					Mode: Mode(rnd.IntN(3)), Behind: rnd.IntN(10) == 0}
				if len(m.list) > 0 && rnd.IntN(4) != 0 {
					a.Mode = m.mode
				}
				if a.Mode == Permits {
					a.Permits = 30 + rnd.Int64N(2)*rnd.Int64N(2)
					a.Take = 1 + rnd.Int64N(3)
				}
				fence++
				what = fmt.Sprintf("acquire %+v", a)
				f, _, err := l.Acquire(&a, now, func() int64 { return fence })
				got = fmt.Sprint(f, err)
				f, err = m.acquire(&a, now, fence)
				want = fmt.Sprint(f, err)
				if err == ErrRefused {
					checkFreed(t, l, m, &a, now)
				}
				did[fmt.Sprint("acquire ", err)]++
			case n < 7:
				what = "release " + owner
				i := m.at(owner)
				got, want = fmt.Sprint(l.Release([]byte(owner), 0)), fmt.Sprint(i >= 0)
				if i >= 0 {
					m.list = slices.Delete(m.list, i, i+1)
					did["release"]++
				}
			case n < 8:
				what = "touch " + owner
				i := m.at(owner)
				live := i >= 0 && (m.list[i].UntilMicros > now || m.list[i].UntilMicros == 0 && m.list[i].Session != 0)
				got, want = fmt.Sprint(l.Touch([]byte(owner), now, until, session) != nil), fmt.Sprint(live)
				if live {
					m.list[i].UntilMicros, m.list[i].Session = until, session
					did["touch"]++
				}
			case n < 9:
				what = "settle"
				now += rnd.Int64N(400)
				var lost []int64
				due := l.DueMicros()
				l.Settle(now, 1<<30, func(h Holder) { lost = append(lost, h.Fence) })
				slices.Sort(lost)
				if len(lost) > 0 && (due == 0 || due > now) {
					t.Fatalf("seed %d: leases ended at %d, due was %d", seed, now, due)
				}
				got, want = fmt.Sprint(lost), fmt.Sprint(m.settle(now))
				did["lost"] += len(lost)
			default:
				what = "session ends"
				n := 0
				session = 1 + rnd.Int64N(3)
				l.LoseSession(session, now, func(Holder) { n++ })
				had := 0
				for i := 0; i < len(m.list); {
					if h := m.list[i]; h.UntilMicros == 0 && h.Session == session {
						m.lose(i, now)
						had++
					} else {
						i++
					}
				}
				got, want = fmt.Sprint(n), fmt.Sprint(had)
				did["sessions"] += had
			}
			if got != want {
				t.Fatalf("seed %d, step %d: %s: %s, want %s", seed, step, what, got, want)
			}
			l = stored(l)
			if err := l.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %s: %v", seed, step, what, err)
			}
			if got, want := pictureOf(l), m.picture(); got != want {
				t.Fatalf("seed %d, step %d: after %s\n got %s\nwant %s", seed, step, what, got, want)
			}
			if l.large != nil {
				did["large"]++
			}
		}
	}
	t.Log(did)
	for _, what := range []string{"acquire <nil>", "acquire " + ErrRefused.Error(), "acquire " + ErrPermits.Error(),
		"acquire " + ErrOtherwise.Error(), "release", "touch", "lost", "sessions", "large"} {
		if did[what] < 20 {
			t.Errorf("only %d times %s", did[what], what)
		}
	}
}

// checkFreed: if nobody does anything, a refused request is granted at the time that Freed returned, and not before.
func checkFreed(t *testing.T, l *Lock, m *naive, a *Ask, now int64) {
	t.Helper()
	if a.Behind {
		return
	}
	fence, at := l.Freed(a)
	if fence != 0 && l.ByFence(fence) == nil {
		t.Fatalf("fence %d is nobody's", fence)
	}
	if at == 0 {
		return
	}
	for _, test := range []struct {
		at   int64
		want bool
	}{{at - 1, false}, {at, true}} {
		if test.at < now {
			continue
		}
		c := &naive{slices.Clone(m.list), m.mode, m.permits, m.closed}
		for _, h := range c.list { // a delay after a lease is more than can be told
			if h.DelayMicros != 0 {
				return
			}
		}
		c.settle(test.at)
		if _, err := c.acquire(a, test.at, 1<<54); (err == nil) != test.want {
			t.Fatalf("%+v is told %d at %d; at %d it is %v: %+v", a, at, now, test.at, err, m)
		}
	}
}
