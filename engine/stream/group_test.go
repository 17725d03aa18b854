package stream

// Consumer groups: scenarios, the lag that Redis reports, and pending entries against a model.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func numbered(n int) *Stream {
	s := &Stream{}
	for i := range n {
		s.Add(ID{uint64(i + 1), 0}, pairs("n", fmt.Sprint(i+1)), Limits{MaxBlockEntries: 3})
	}
	return s
}

func TestGroups(t *testing.T) {
	s := numbered(5)
	for _, name := range []string{"b", "a", "c"} {
		if _, ok := s.CreateGroup([]byte(name), MinID, UnknownRead); !ok {
			t.Errorf("%s was there", name)
		}
	}
	if _, ok := s.CreateGroup([]byte("a"), MinID, 0); ok {
		t.Error("a second group a")
	}
	var names string
	for _, g := range s.Groups() {
		names += g.Name
	}
	if names != "abc" {
		t.Errorf("order of groups: %s", names)
	}
	if !s.DestroyGroup([]byte("b")) || s.DestroyGroup([]byte("b")) || s.Group([]byte("b")) != nil {
		t.Error("destroyed b is there")
	}
	g := s.Group([]byte("a"))
	alice, created := g.CreateConsumer([]byte("alice"), 50)
	if again, twice := g.CreateConsumer([]byte("alice"), 60); !created || twice || again != alice || alice.SeenMillis != 50 || alice.ActiveMillis != -1 {
		t.Errorf("consumer: %+v", alice)
	}
	bob, _ := g.CreateConsumer([]byte("bob"), 50)
	var got []string
	s.Deliver(g, alice, 3, false, 100, func(it *Iter) { got = append(got, text(it)) })
	s.Deliver(g, bob, 0, false, 100, func(it *Iter) { got = append(got, text(it)) })
	if want := []string{"1-0 n=1", "2-0 n=2", "3-0 n=3", "4-0 n=4", "5-0 n=5"}; !slices.Equal(got, want) {
		t.Errorf("delivered %v", got)
	}
	if g.LastID != (ID{5, 0}) || alice.Pending() != 3 || bob.Pending() != 2 || g.Pending() != 5 || alice.ActiveMillis != 100 {
		t.Errorf("%v, %d and %d pending", g.LastID, alice.Pending(), bob.Pending())
	}
	if lag, ok := s.Lag(g); lag != 0 || !ok || g.EntriesRead != 5 {
		t.Errorf("lag %d %v, %d read", lag, ok, g.EntriesRead)
	}
	if !g.Ack(ID{2, 0}) || g.Ack(ID{2, 0}) || g.FirstPending().ID != (ID{1, 0}) || g.LastPending().ID != (ID{5, 0}) {
		t.Error("acknowledged twice")
	}
	// An entry that is read again counts as delivered again; a deleted one is passed as deleted.
	s.Delete(ID{3, 0})
	got = nil
	s.History(g, alice, MinID, 0, 200, func(id ID, it *Iter) { got = append(got, fmt.Sprint(id, it == nil)) })
	if want := []string{"1-0 false", "3-0 true"}; !slices.Equal(got, want) {
		t.Errorf("history %v", got)
	}
	if p := g.FirstPending(); p.Deliveries != 2 || p.DeliveredMillis != 200 {
		t.Errorf("first pending: %+v", p)
	}
	// Only idle entries move; deleted ones are forgotten.
	if s.Claim(g, bob, ID{1, 0}, Claim{MinIdleMillis: 50, DeliveredMillis: 220, Deliveries: -1}, 220) {
		t.Error("claimed what is not idle")
	}
	if !s.Claim(g, bob, ID{1, 0}, Claim{MinIdleMillis: 50, DeliveredMillis: 260, Deliveries: -1}, 260) || bob.Pending() != 3 {
		t.Error("not claimed what is idle")
	}
	if s.Claim(g, bob, ID{3, 0}, Claim{Deliveries: -1}, 260) || alice.Pending() != 0 {
		t.Error("claimed what was deleted, or it is pending still")
	}
	if s.Claim(g, bob, ID{2, 0}, Claim{Deliveries: -1}, 260) || !s.Claim(g, bob, ID{2, 0}, Claim{Deliveries: 9, Force: true}, 260) {
		t.Error("claimed what was not pending, without force, or not with it")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if n := g.DeleteConsumer([]byte("bob")); n != 4 || g.Pending() != 0 || g.DeleteConsumer([]byte("bob")) != 0 {
		t.Errorf("%d pending with bob, %d left", n, g.Pending())
	}
}

func TestLag(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(s *Stream) *Group
		lag   int64
		known bool
	}{
		{"an empty stream", func(s *Stream) *Group {
			*s = Stream{}
			g, _ := s.CreateGroup(nil, MinID, UnknownRead)
			return g
		}, 0, true},
		{"all entries deleted", func(s *Stream) *Group {
			s.Trim(Trim{})
			g, _ := s.CreateGroup(nil, MinID, UnknownRead)
			return g
		}, 0, true},
		{"before the first", func(s *Stream) *Group { g, _ := s.CreateGroup(nil, MinID, UnknownRead); return g }, 5, true},
		{"at the first", func(s *Stream) *Group { g, _ := s.CreateGroup(nil, ID{1, 0}, UnknownRead); return g }, 4, true},
		{"at the last", func(s *Stream) *Group { g, _ := s.CreateGroup(nil, ID{5, 0}, UnknownRead); return g }, 0, true},
		{"between", func(s *Stream) *Group { g, _ := s.CreateGroup(nil, ID{3, 0}, UnknownRead); return g }, 4, false},
		{"between, and told", func(s *Stream) *Group { g, _ := s.CreateGroup(nil, ID{3, 0}, 3); return g }, 2, true},
		{"an entry deleted ahead", func(s *Stream) *Group {
			g, _ := s.CreateGroup(nil, ID{3, 0}, 3)
			s.Delete(ID{4, 0})
			return g
		}, 4, false},
		{"an entry deleted behind", func(s *Stream) *Group {
			g, _ := s.CreateGroup(nil, ID{3, 0}, 3)
			s.Delete(ID{2, 0})
			return g
		}, 2, true},
		{"beyond the last", func(s *Stream) *Group { g, _ := s.CreateGroup(nil, ID{9, 0}, UnknownRead); return g }, 4, false},
	} {
		s := numbered(5)
		g := c.do(s)
		if lag, ok := s.Lag(g); ok != c.known || ok && lag != c.lag {
			t.Errorf("%s: %d %v, want %d %v", c.name, lag, ok, c.lag, c.known)
		}
	}
}

// modelPending is a pending entry as the model keeps it.
type modelPending struct {
	consumer   string
	delivered  int64
	deliveries uint64
}

func TestPendingAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := &Stream{}
	g, _ := s.CreateGroup([]byte("g"), MinID, 0)
	m := map[ID]modelPending{}
	alive := map[ID]bool{}
	did := map[string]int{}
	image, then := s.Image(), contents(s)
	now, next := int64(1000), uint64(1)
	for step := range 3000 {
		now += int64(rnd.IntN(5))
		name := []byte{byte('a' + rnd.IntN(3))}
		id := ID{next - rnd.Uint64N(min(next, 60)), 0}
		switch rnd.IntN(9) {
		case 0, 1:
			s.Add(ID{next, 0}, pairs("n", "v"), Limits{MaxBlockEntries: 5})
			alive[ID{next, 0}] = true
			next++
		case 2:
			s.Delete(id)
			delete(alive, id)
		case 3, 4:
			c, _ := g.CreateConsumer(name, now)
			from := g.LastID
			s.Deliver(g, c, 1+rnd.IntN(3), false, now, func(it *Iter) {
				if !alive[it.ID()] || it.ID().Compare(from) <= 0 {
					t.Fatalf("step %d: delivered %v after %v", step, it.ID(), from)
				}
				from = it.ID()
				m[from] = modelPending{string(name), now, 1}
				did["deliver"]++
			})
		case 5:
			if _, want := m[id]; g.Ack(id) != want {
				t.Fatalf("step %d: acknowledge %v", step, id)
			}
			if _, ok := m[id]; ok {
				did["ack"]++
			}
			delete(m, id)
		case 6:
			c, _ := g.CreateConsumer(name, now)
			p, ok := m[id]
			how := Claim{MinIdleMillis: int64(rnd.IntN(60)), DeliveredMillis: now, Deliveries: -1, Force: rnd.IntN(2) == 0}
			want := alive[id] && (ok && now-p.delivered >= how.MinIdleMillis || !ok && how.Force)
			if s.Claim(g, c, id, how, now) != want {
				t.Fatalf("step %d: claim %v with %+v of %+v", step, id, how, p)
			}
			if want {
				if !ok {
					p.deliveries = 1
				}
				m[id] = modelPending{string(name), now, p.deliveries + 1}
				did["claim"]++
			} else if !alive[id] {
				delete(m, id)
			}
		case 7:
			c, _ := g.CreateConsumer(name, now)
			idle := int64(rnd.IntN(60))
			n := 0
			s.AutoClaim(g, c, id, 3, idle, true, now, func(id ID) {
				p := m[id]
				if !alive[id] || now-p.delivered < idle {
					t.Fatalf("step %d: claimed %v, %+v", step, id, p)
				}
				m[id] = modelPending{string(name), now, p.deliveries}
				n++
				did["autoclaim"]++
			}, func(p Pending) {
				if alive[p.ID] {
					t.Fatalf("step %d: %v is said to be deleted", step, p.ID)
				}
				delete(m, p.ID)
				n++
			})
			if n > 3 {
				t.Fatalf("step %d: claimed %d, at most 3", step, n)
			}
		default:
			if rnd.IntN(20) == 0 {
				want := 0
				for id, p := range maps.Clone(m) {
					if p.consumer == string(name) {
						delete(m, id)
						want++
					}
				}
				if got := g.DeleteConsumer(name); got != want {
					t.Fatalf("step %d: %d pending with the deleted, want %d", step, got, want)
				}
			} else if rnd.IntN(10) == 0 {
				clone := s.Clone()
				s, g = &clone, clone.Groups()[0]
			}
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
		n := 0
		before := ID{}
		g.EachPending(MinID, func(p Pending) bool {
			if want := (modelPending{p.Consumer.Name, p.DeliveredMillis, p.Deliveries}); m[p.ID] != want || p.ID.Compare(before) <= 0 {
				t.Fatalf("step %d: %v is %+v, want %+v", step, p.ID, want, m[p.ID])
			}
			before = p.ID
			n++
			return true
		})
		if n != len(m) || n != g.Pending() {
			t.Fatalf("step %d: %d pending, want %d", step, n, len(m))
		}
	}
	for _, op := range []string{"deliver", "ack", "claim", "autoclaim"} {
		if did[op] < 40 {
			t.Errorf("only %d × %s: the test did no work", did[op], op)
		}
	}
}
