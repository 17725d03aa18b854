package delayqueue

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"
)

// The cost of a delivery does not grow with the number of groups: among a million it takes at most a few times as long
// as among a thousand, because memory is further away.
func TestGroupsCost(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	const timesMax = 8
	cost := map[int]time.Duration{}
	for _, groups := range []int{1000, 1_000_000} {
		q := New()
		next := 0
		add := func() {
			name := fmt.Appendf(nil, "%d", next)
			next++
			q.Add(start, name, nil, start, &Extra{Group: name}, Put)
		}
		for range groups {
			add()
		}
		q.Configure(Settings{GroupConc: 1})
		for q.rank.later.Len() > 0 { // they fell due before
			g, _ := q.rank.later.PopMin()
			g.state = groupReady
			q.rank.ready.Set(g)
		}
		runtime.GC()
		// The best of many measurements is what it takes on an idle machine.
		best := time.Duration(math.MaxInt64)
		for range 200 {
			began := time.Now()
			for range 100 {
				if q.Pop(start, 0, 1, func(Entry) {}) != 1 {
					t.Fatal("nothing is due")
				}
			}
			best = min(best, time.Since(began)/100)
			for range 100 {
				add()
			}
		}
		cost[groups] = best
		if n := q.Groups(); n != groups {
			t.Fatalf("%d groups of %d are left", n, groups)
		}
	}
	t.Logf("a delivery takes %v of 1,000 groups and %v of 1,000,000", cost[1000], cost[1_000_000])
	if cost[1_000_000] > timesMax*cost[1000] {
		t.Errorf("a delivery takes %v of 1,000 groups, %v of 1,000,000", cost[1000], cost[1_000_000])
	}
}

// A tenant with a million due entries delays another's single one by one round.
func TestGroupsRound(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	const many = 1_000_000
	q := New()
	for i := range many {
		q.Add(start, fmt.Appendf(nil, "big%d", i), nil, start, &Extra{Group: []byte("big")}, Put)
	}
	rounds := 0
	for i := range 1000 {
		q.Add(start, fmt.Appendf(nil, "one%d", i), nil, start, &Extra{Group: []byte("small")}, Put)
		for n := 1; ; n++ {
			small := false
			q.Pop(start, 0, 1, func(e Entry) {
				x := e.Extra()
				small = string(x.Group) == "small"
			})
			if small {
				break
			}
			if rounds++; n == 2 {
				t.Fatalf("the single entry %d waits for more than a round", i)
			}
		}
	}
	if q.Len() != many-rounds || rounds < 900 {
		t.Errorf("%d are left, %d went first", q.Len(), rounds)
	}
}

// A change of limits and rules does not look at all groups, of which there are 100,000 (a million in the long run): it
// takes no longer than with a few. Entries that it frees are delivered at once.
func TestGroupsReset(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	groups := 100_000
	if os.Getenv("LIMITKV_MODEL_STEPS") != "" {
		groups = 1_000_000
	}
	for _, c := range []struct {
		name     string
		from, to Settings
	}{
		{"conc", Settings{GroupConc: 1}, Settings{GroupConc: 2}},
		{"no conc", Settings{GroupConc: 1}, Settings{}},
		{"rules", Settings{GroupRules: "FIXED 1 1000000"}, Settings{GroupRules: "FIXED 2 1000000"}},
		{"no rules", Settings{GroupRules: "FIXED 1 1000000"}, Settings{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := New()
			q.Configure(c.from)
			for i := range 2 * groups {
				q.Add(start, fmt.Appendf(nil, "%d", i), nil, start, &Extra{Group: fmt.Appendf(nil, "%d", i%groups)}, Put)
			}
			deliver := func(want int) {
				t.Helper()
				if n := q.Pop(start, 1_000_000_000, 2*groups, func(Entry) {}); n != want {
					t.Fatalf("%d are delivered, want %d", n, want)
				}
			}
			deliver(groups)
			deliver(0)
			if _, ok := q.NextDelivery(start); ok && c.from.GroupConc > 0 {
				t.Error("something is to be delivered")
			}
			runtime.GC()
			worst := time.Duration(0)
			for _, step := range []func(){
				func() { q.Configure(c.to) },
				func() {
					if at, ok := q.NextDelivery(start); !ok || at > start {
						t.Error("nothing is to be delivered")
					}
				},
				func() { q.Pop(start, 1_000_000_000, 1, func(Entry) {}) },
			} {
				began := time.Now()
				step()
				worst = max(worst, time.Since(began))
			}
			t.Logf("the longest step took %v", worst)
			if worst > 100*time.Millisecond { // to look at all takes some 4 µs a group
				t.Errorf("a step took %v", worst)
			}
			deliver(groups - 1)
			if err := q.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Groups that have nothing but limiters are forgotten once these are full or have earlier rules, also if nothing is
// delivered. It is not visible when: a queue that never forgets by itself, like a replica's, has the same turns.
func TestGroupsAreForgotten(t *testing.T) {
	const second = int64(1_000_000)
	rules := Settings{GroupRules: "FIXED 5 60000"}
	for _, to := range []Settings{rules, {GroupRules: "FIXED 6 60000"}, {}} {
		q, never := New(), New()
		both := func(f func(q *Queue)) { f(q); f(never) }
		add := func(now int64, id string) {
			both(func(q *Queue) { q.Add(now, []byte(id), nil, now, &Extra{Group: []byte("g" + id)}, Put) })
		}
		both(func(q *Queue) { q.Configure(rules) })
		const groups = 1000
		for i := range groups {
			add(start, fmt.Sprint(i))
		}
		q.Pop(start, 0, groups, func(e Entry) { never.Take(e.ID, start, 0) })
		if q.Groups() != groups || q.Len() != 0 {
			t.Fatalf("%d groups, %d entries", q.Groups(), q.Len())
		}
		both(func(q *Queue) { q.Configure(to) })
		at := q.NextDue() * 1000
		changed := to != rules
		switch {
		case changed && at > start:
			t.Errorf("limiters of former rules go at %d", at)
		case !changed && (at < start+60*second || at > start+120*second+idleGraceMicros+1000):
			t.Errorf("full limiters go after %d µs", at-start)
		}
		now := max(at, start)
		for steps := 0; q.NextDue() != 0; steps++ {
			if n, empty := q.Settle(now, 100, nil); n != 0 || empty {
				t.Fatalf("%d are served, empty %v", n, empty)
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
			if steps > groups/100+1 {
				t.Fatal("it does not end")
			}
		}
		if q.rank != nil && len(q.rank.groups) != 0 {
			t.Errorf("%d groups are kept", len(q.rank.groups))
		}
		for i := range 10 {
			add(now, fmt.Sprint(i*7))
		}
		if err := never.Check(); err != nil {
			t.Fatal(err)
		}
		live := func(q *Queue) (list []Group) {
			turns, _ := q.Turns()
			for _, g := range turns {
				if g.Waiting+g.Leased > 0 {
					list = append(list, g)
				}
			}
			return list
		}
		a, b := live(q), live(never)
		for i := range b {
			b[i].Bucket = a[i].Bucket // which is full in one and forgotten in the other
		}
		if len(a) != 10 || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%+v: turns\n%v\n%v", to, a, b)
		}
	}
}
