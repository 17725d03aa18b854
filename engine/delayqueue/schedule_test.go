package delayqueue

import "testing"

// A schedule that replaces another one counts from now. It is not delayed by an occurrence of the other one that was
// due much later, but was brought forward and is leased or has expired.
func TestReplacedSchedule(t *testing.T) {
	const second, minute, day = int64(1_000_000), int64(60_000_000), int64(86_400_000_000)
	for name, plan := range map[string]*Schedule{
		"EVERY":          {EveryMicros: minute},
		"EVERY 12 hours": {EveryMicros: day / 2},
		"CRON":           {Cron: "* * * * *"},
	} {
		for _, state := range []State{Ready, Leased, Dying} {
			q, now := New(), int64(1_700_000_000)*second
			q.Configure(Settings{Dead: "dead"})
			plan.ID = []byte("plan")
			if _, err := q.Schedule(now, &Schedule{ID: plan.ID, EveryMicros: day, Extra: Extra{ExpireMicros: second}}, Put); err != nil {
				t.Fatal(err)
			}
			id := occurrence(nil, plan.ID, q.Schedules()[0].NextMicros)
			if !q.Touch(id, 0, now, now) {
				t.Fatal(name, "nothing to bring forward")
			}
			if state == Dying {
				now += second
				q.Settle(now, 10, nil)
			} else if n := q.Pop(now, minute, 1, func(Entry) {}); n != 1 {
				t.Fatal(name, "not delivered")
			}
			if added, err := q.Schedule(now, plan, Put); err != nil || !added {
				t.Fatal(name, added, err)
			}
			done := false
			switch state {
			case Dying:
				done = q.TakeDying(now, 1, func(Entry) {}) == 1
			case Leased:
				done = q.Ack(id, 1, now)
			case Ready: // again
				done = q.Nack(id, 1, now, 0, false, nil) && q.Pop(now, 0, 1, func(Entry) {}) == 1
			}
			if !done {
				t.Fatal(name, state, "the occurrence is not done")
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
			// An EVERY begins with a whole millisecond; a CRON of each minute with a whole minute.
			within := max(plan.EveryMicros, minute)
			if next := q.Schedules()[0].NextMicros; next <= now || next > now+within {
				t.Errorf("%s, %v: the next occurrence comes after %d s, not within %d", name, state, (next-now)/second, within/second)
			}
		}
	}
}
