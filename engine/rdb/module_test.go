package rdb

// Values that Redis has no type for.

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/limiter"
)

// natives are a limiter of each algorithm and queues in all states.
func natives(t testing.TB) []Value {
	var out []Value
	for _, rules := range [][]limiter.Rule{
		{{Algorithm: limiter.GCRA, Count: 10, PeriodMicros: 1e6, Burst: 5}},
		{{Algorithm: limiter.Log, Count: 10, PeriodMicros: 1e6}, {Algorithm: limiter.Window, Count: 100, PeriodMicros: 1e7}},
		{{Algorithm: limiter.Fixed, Count: 3, PeriodMicros: 5e6}},
	} {
		p := limiter.New(nil, rules, true)
		for i := range 5 {
			var err error
			if p, _, err = limiter.Take(p, 1e15+int64(i)*1000, 1, limiter.Try); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, Value{Kind: engine.KindLimiter, String: p})
	}
	kept := delayqueue.New()
	kept.Configure(delayqueue.Settings{LeaseMicros: 5, Tries: 1, Dead: "dead", BackoffMicros: 1, BackoffMaxMicros: 1000})
	q := delayqueue.New()
	q.Configure(delayqueue.Settings{LeaseMicros: 1e6, Tries: 2, Dead: "dead", BackoffMicros: 1, BackoffMaxMicros: 1000})
	for i := range 20 {
		q.Add(fmt.Appendf(nil, "id%d", i), fmt.Appendf(nil, "%0*d", i, i), int64(i/2), delayqueue.Put)
	}
	q.Pop(100, 1000, 12, func(delayqueue.Entry) {})
	q.Nack([]byte("id3"), 1, 200, delayqueue.ByBackoff, false)
	q.Nack([]byte("id4"), 1, 200, 0, true)
	q.Ack([]byte("id5"), 1, 200)
	q.Add([]byte("id6"), []byte("replaced"), 50, delayqueue.Put)
	if q.Dying() != 1 || q.Stored(delayqueue.Leased) == 0 {
		t.Fatal("the queue is not in all states")
	}
	return append(out, Value{Kind: engine.KindDelayQueue, Object: kept}, Value{Kind: engine.KindDelayQueue, Object: q})
}

func TestNatives(t *testing.T) {
	for i, v := range natives(t) {
		payload := AppendDump(nil, entry(v), format)
		if payload[0] != typeModule {
			t.Fatalf("%d: type %d", i, payload[0])
		}
		w := load(t, payload, limits)
		if again := AppendDump(nil, entry(w), format); !bytes.Equal(again, payload) {
			t.Errorf("%d: %x\nbecame %x", i, payload, again)
		}
		if q, ok := v.Object.(*delayqueue.Queue); ok {
			// It goes on as the other does.
			a, b := q.Clone(), w.Object.(*delayqueue.Queue)
			for now := int64(200); now < 4e6; now += 300_000 {
				var left, right []string
				for j, x := range []*delayqueue.Queue{a, b} {
					out := []*[]string{&left, &right}[j]
					x.Settle(now, 100, nil)
					x.Pop(now, 250_000, 3, func(e delayqueue.Entry) {
						*out = append(*out, fmt.Sprintf("%s %s %d %d", e.ID, e.Payload, e.Attempt, e.DueMicros))
					})
					x.TakeDying(100, func(e delayqueue.Entry) { *out = append(*out, "dead "+string(e.ID)) })
				}
				if fmt.Sprint(left) != fmt.Sprint(right) {
					t.Fatalf("at %d: %v\n%v", now, left, right)
				}
			}
			if err := b.Check(); err != nil || a.Totals() != b.Totals() {
				t.Error(err, a.Totals(), b.Totals())
			}
		}
		// Whatever is changed in it makes another value that is whole, or none.
		body := payload[:len(payload)-FooterBytes]
		for at := range body {
			for _, bit := range []byte{1, 0x10, 0x80} {
				wrong := bytes.Clone(body)
				wrong[at] ^= bit
				if w, err := Load(AppendFooter(wrong), limits); err == nil {
					check(t, w)
				}
			}
			if _, err := Load(AppendFooter(bytes.Clone(body[:at])), limits); err == nil {
				t.Errorf("%d: cut after %d bytes it is a value", i, at)
			}
		}
	}
}
