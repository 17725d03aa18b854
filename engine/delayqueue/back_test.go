package delayqueue

import (
	"fmt"
	"testing"
)

// A schedule comes as soon as it would have, in whatever state its occurrence is when the clock is set back.
func TestSetBackEvery(t *testing.T) {
	const second, hour = int64(1_000_000), int64(3_600_000_000)
	for _, state := range []State{Delayed, Ready, Leased} {
		for _, by := range []int64{second, hour, 720 * hour} {
			t.Run(fmt.Sprint(state, by), func(t *testing.T) {
				q, now := New(), int64(1_700_000_000)*second
				plan := &Schedule{ID: []byte("plan"), EveryMicros: 60 * second, Extra: Extra{Group: []byte("g")}}
				if _, err := q.Schedule(now, plan, Put); err != nil {
					t.Fatal(err)
				}
				if state != Delayed {
					now += 61 * second
				}
				if state == Leased {
					if n := q.Pop(now, 100*second, 1, func(Entry) {}); n != 1 {
						t.Fatal("not delivered")
					}
				}
				now -= by
				q.SetBack(now, -by)
				if err := q.Check(); err != nil {
					t.Fatal(err)
				}
				if _, err := saved(q); err != nil {
					t.Fatal(err)
				}
				if state == Delayed {
					now += 60 * second
				}
				var name []byte
				if state == Leased {
					q.Peek(Leased, now, 1, func(e Entry) { name = append(name, e.ID...) })
				} else if n := q.Pop(now, second, 1, func(e Entry) { name = append(name, e.ID...) }); n != 1 {
					t.Fatalf("the %s occurrence does not come in time", name)
				}
				if !q.Ack(name, 0, now) {
					t.Fatalf("%s is not leased", name)
				}
				if err := q.Check(); err != nil {
					t.Fatal(err)
				}
				now += 60 * second
				if n := q.Pop(now, second, 1, func(Entry) {}); n != 1 {
					t.Error("the next occurrence does not come in time")
				}
				if n := q.Pop(now, second, 1, func(Entry) {}); n != 0 {
					t.Error("two occurrences come")
				}
			})
		}
	}
}

// The limiters of groups allow a delivery as soon as they would have.
func TestSetBackGroups(t *testing.T) {
	const second = int64(1_000_000)
	for _, looked := range []bool{false, true} { // true makes the group held
		q, now := New(), int64(1_700_000_000)*second
		q.Configure(Settings{GroupRules: "FIXED 1 60000"})
		for i := range 2 {
			q.Add(now, []byte{'a' + byte(i)}, nil, now, &Extra{Group: []byte("g")}, Put)
		}
		q.Pop(now, 0, 1, func(Entry) {})
		if looked && q.Pop(now, 0, 1, func(Entry) {}) != 0 {
			t.Fatal("two in a minute")
		}
		now -= 3600 * second
		q.SetBack(now, -3600*second)
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		if n := q.Pop(now+59*second, 0, 1, func(Entry) {}); n != 0 {
			t.Error("two in a minute")
		}
		if n := q.Pop(now+60*second, 0, 1, func(Entry) {}); n != 1 {
			t.Error("none after a minute")
		}
	}
}
