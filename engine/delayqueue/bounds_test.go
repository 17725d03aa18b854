package delayqueue

// Restored queues with values at the limits stay within them, whatever is done to them.

import (
	"strconv"
	"testing"
)

const boundsNow = 1_700_000_000_000_000

// again checks a queue, and that it can be saved and restored.
func again(t *testing.T, q *Queue) *Queue {
	t.Helper()
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	out, err := saved(q)
	if err != nil {
		t.Fatalf("%+v: %v", q.Head(), err)
	}
	if err := out.Check(); err != nil {
		t.Fatal(err)
	}
	return out
}

func restored(t *testing.T, h Head, entries ...Saved) *Queue {
	t.Helper()
	q, err := Restore(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range entries {
		if err := q.RestoreEntry(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.RestoreOrder(); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestBoundsRefuse(t *testing.T) {
	for _, h := range []Head{
		{Kept: true, Settings: Settings{LeaseMicros: SpanMax + 1}},
		{Kept: true, Settings: Settings{BackoffMicros: 1 << 60, BackoffMaxMicros: 1 << 60}},
		{Kept: true, Settings: Settings{LeaseMicros: -1}},
		{Kept: true, Seq: seqMax + 1},
		{Kept: true, Totals: Totals{Added: countMax + 1}},
	} {
		if _, err := Restore(h); err == nil {
			t.Errorf("%+v was taken over", h)
		}
	}
	entry := Saved{ID: []byte("a"), State: Delayed, Seq: 1}
	for _, change := range []func(s *Saved){
		func(s *Saved) { s.AtMicros, s.DueMicros = TimeMax+1, TimeMax+1 },
		func(s *Saved) { s.Attempt = attemptMax + 1 },
		func(s *Saved) { s.Extra = append([]byte{hasExpire}, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x09) },
	} {
		q := New()
		q.seq = 1
		s := entry
		if change(&s); q.RestoreEntry(s) == nil {
			t.Errorf("%+v was taken over", s)
		}
	}
	// Two that died at the same moment would have the same place.
	q, _ := Restore(Head{Seq: 9})
	for _, id := range []string{"a", "b"} {
		if err := q.RestoreEntry(Saved{ID: []byte(id), State: Leased, AtMicros: boundsNow + int64(id[0]), DueMicros: 1, Seq: 7}); err != nil {
			t.Fatal(err)
		}
	}
	if q.RestoreOrder() == nil {
		t.Error("two entries of one number were taken over")
	}
}

func TestBoundsHold(t *testing.T) {
	now := int64(boundsNow)
	h := Head{Kept: true, Seq: seqMax, Settings: Settings{LeaseMicros: SpanMax, BackoffMicros: SpanMax, BackoffMaxMicros: SpanMax, Tries: 3, Dead: "d"},
		Totals: Totals{countMax, countMax, countMax, countMax, countMax, countMax, countMax, countMax}}
	q := restored(t, h,
		Saved{ID: []byte("b"), State: Delayed, AtMicros: now, DueMicros: now, Seq: seqMax, Attempt: attemptMax, Base: attemptMax - 1},
		Saved{ID: []byte("a"), State: Delayed, AtMicros: now, DueMicros: now, Seq: seqMax - 1},
		Saved{ID: []byte("l"), State: Leased, AtMicros: TimeMax, DueMicros: TimeMax, Seq: 1, Attempt: 1},
		Saved{ID: []byte("late"), State: Delayed, AtMicros: TimeMax, DueMicros: TimeMax, Seq: 2, Extra: (&Extra{ExpireMicros: SpanMax, UniqueMicros: SpanMax, MaxWaitMicros: SpanMax, FirstMicros: TimeMax}).Append(nil)},
	)
	if again(t, q); q.seq != 4 {
		t.Errorf("the numbers were not made anew: %d", q.seq)
	}
	var got []string
	q.Pop(now, q.Settings().LeaseMicros, 5, func(e Entry) { got = append(got, string(e.AppendName(nil))) })
	if len(got) != 2 || got[0] != "a#1" || got[1] != "b#1" {
		t.Errorf("delivered %q", got)
	}
	again(t, q)
	if !q.Nack([]byte("b"), 1, now, ByBackoff, false, nil) || !q.Touch([]byte("a"), 1, now, TimeMax) {
		t.Error("leases are lost")
	}
	q.Add(TimeMax, []byte("late"), nil, TimeMax, &Extra{MaxWaitMicros: SpanMax, ExpireMicros: SpanMax}, Put)
	again(t, q)
	for _, at := range []int64{now + SpanMax, TimeMax - 1, TimeMax} {
		q.Settle(at, 100, nil)
		again(t, q)
		q.Pop(at, SpanMax, 100, func(Entry) {})
		again(t, q)
	}
	if q.Settle(TimeMax+SpanMax, 100, nil); q.Totals() != h.Totals {
		t.Errorf("counts went on: %+v", q.Totals())
	}
	again(t, q)
}

func TestBoundsOfSchedules(t *testing.T) {
	for name, s := range map[string]Schedule{
		"every": {ID: []byte("s"), EveryMicros: SpanMax, BaseMicros: TimeMax, AfterMicros: TimeMax, NextMicros: TimeMax},
		"cron":  {ID: []byte("s"), Cron: "* * * * *", AfterMicros: TimeMax, NextMicros: TimeMax},
		"soon":  {ID: []byte("s"), EveryMicros: SpanMax, AfterMicros: TimeMax, NextMicros: 7_000},
	} {
		x := (&Extra{Occurrence: true}).Append(nil)
		id := occurrence(nil, s.ID, s.NextMicros)
		q := restored(t, Head{Kept: true, Seq: 1}, Saved{ID: id, State: Delayed, AtMicros: s.NextMicros, DueMicros: s.NextMicros, Seq: 1, Extra: x})
		if err := q.RestoreSchedule(&s); err != nil {
			t.Fatal(name, err)
		}
		again(t, q)
		if n := q.Pop(TimeMax, 1, 5, func(Entry) {}); n != 1 {
			t.Errorf("%s: %d delivered", name, n)
		}
		again(t, q)
		q.Settle(TimeMax+2, 5, nil)
		again(t, q)
		q.Remove(id, 0, boundsNow)
		if again(t, q); q.Scheduled(s.ID) {
			t.Errorf("%s: it comes again after the last moment", name)
		}
	}
	q := restored(t, Head{Kept: true})
	if err := q.RestoreSchedule(&Schedule{ID: []byte("s"), EveryMicros: SpanMax + 1, NextMicros: 1}); err == nil {
		t.Error("a period that is too long was taken over")
	}
}

func TestBoundsOfTurns(t *testing.T) {
	q := restored(t, Head{Seq: 9})
	list := []Group{{Turn: 1}}
	for i := range 3 {
		name := strconv.Itoa(i)
		if err := q.RestoreEntry(Saved{ID: []byte(name), State: Delayed, Seq: uint64(i + 1), Extra: (&Extra{Group: []byte(name)}).Append(nil)}); err != nil {
			t.Fatal(err)
		}
		list = append(list, Group{Name: name, Turn: seqMax - uint64(i)})
	}
	if err := q.RestoreTurns(list, seqMax); err != nil {
		t.Fatal(err)
	}
	again(t, q)
	var got string
	q.Pop(boundsNow, 0, 2, func(e Entry) { got += string(e.ID) })
	if got != "21" {
		t.Errorf("turns: %s", got)
	}
	again(t, q)
}
