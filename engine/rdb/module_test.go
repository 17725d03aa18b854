package rdb

// Values that Redis has no type for.

import (
	"bytes"
	"encoding/hex"
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
	kept.Configure(delayqueue.Settings{Paused: true, LeaseMicros: 5, Tries: 1, Dead: "dead", BackoffMicros: 1, BackoffMaxMicros: 1000})
	q := delayqueue.New()
	q.Configure(delayqueue.Settings{LeaseMicros: 1e6, Tries: 2, Dead: "dead", BackoffMicros: 1, BackoffMaxMicros: 1000, MaxLen: 100, GroupConc: 9, GroupRules: "GCRA 5 1000"})
	for i := range 20 {
		var x *delayqueue.Extra
		if i%3 == 0 {
			x = &delayqueue.Extra{Group: []byte("g"), Prio: uint8(i), ExpireMicros: 1e6, UniqueMicros: int64(i) * 1e6, MaxWaitMicros: 5}
		}
		q.Add(0, fmt.Appendf(nil, "id%d", i), fmt.Appendf(nil, "%0*d", i, i), int64(i/2), x, delayqueue.Put)
	}
	q.Pop(100, 1000, 12, func(delayqueue.Entry) {})
	q.Nack([]byte("id3"), 1, 200, delayqueue.ByBackoff, false, []byte("a reason"))
	q.Nack([]byte("id4"), 1, 200, 0, true, nil)
	q.Ack([]byte("id5"), 1, 200)
	for _, id := range []string{"id7", "id8", "id17"} {
		q.Add(0, []byte(id), []byte("replaced"), 50, &delayqueue.Extra{Group: []byte("h"), MaxWaitMicros: 5}, delayqueue.Put)
	}
	for _, plan := range []delayqueue.Schedule{
		{ID: []byte("often"), Payload: []byte("p"), EveryMicros: 300_000},
		{ID: []byte("daily"), Cron: "@daily", Zone: "Europe/Berlin", Extra: delayqueue.Extra{Group: []byte("g"), ExpireMicros: 5}},
	} {
		if ok, err := q.Schedule(200, &plan, delayqueue.Put); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if q.Dying() != 1 || q.Stored(delayqueue.Leased) == 0 || q.Behind() != 2 {
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
			// The copy behaves as the original does.
			a, b := q.Clone(), w.Object.(*delayqueue.Queue)
			for now := int64(200); now < 4e6; now += 300_000 {
				var left, right []string
				for j, x := range []*delayqueue.Queue{a, b} {
					out := []*[]string{&left, &right}[j]
					x.Settle(now, 100, nil)
					x.Pop(now, 250_000, 3, func(e delayqueue.Entry) {
						*out = append(*out, fmt.Sprintf("%s %s %d %d", e.ID, e.Payload, e.Attempt, e.DueMicros))
					})
					x.TakeDying(now, 100, func(e delayqueue.Entry) { *out = append(*out, "dead "+string(e.ID)) })
				}
				if fmt.Sprint(left) != fmt.Sprint(right) {
					t.Fatalf("at %d: %v\n%v", now, left, right)
				}
			}
			if err := b.Check(); err != nil || a.Totals() != b.Totals() {
				t.Error(err, a.Totals(), b.Totals())
			}
		}
		// Every change of a byte makes another valid value, or none.
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

// queueOf loads a queue from the output of DUMP.
func queueOf(t *testing.T, dump string) *delayqueue.Queue {
	payload, err := hex.DecodeString(dump)
	if err != nil {
		t.Fatal(err)
	}
	q := load(t, payload, limits).Object.(*delayqueue.Queue)
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	return q
}

// queueVersion1 is the output of DUMP for a queue of encoding version 1: DQ.SET with LEASE 1000 TRIES 2 DEAD dead
// BACKOFF 5 MAX 9, the entries a, b (delayed) and c, and a leased.
const queueVersion1 = "0781964bfeaae7ae780102010280000f4240020202538802632802030201020002000200020002000203050464656164" +
	"020205016305057468697264028100060a24181e400002030200020005016205067365636f6e6402800000c3500202020002000201050161050566697273" +
	"74028100060a24182d8240020102010200028100060a24181e40000200000c00838a8d43c286d91b"

func TestQueueVersion1(t *testing.T) {
	q := queueOf(t, queueVersion1)
	want := delayqueue.Settings{LeaseMicros: 1e6, Tries: 2, Dead: "dead", BackoffMicros: 5000, BackoffMaxMicros: 9000}
	if q.Settings() != want {
		t.Errorf("settings %+v", q.Settings())
	}
	const now = 1_700_000_000_000_000
	var got []string
	q.Peek(delayqueue.Any, now, 9, func(e delayqueue.Entry) {
		got = append(got, fmt.Sprintf("%s %s %d %d %d", e.AppendName(nil), e.Payload, (e.DueMicros-now)/1000, e.Attempt, e.State))
	})
	if s := fmt.Sprint(got); s != "[c third 0 0 1 b second 50 0 2 a#1 first 0 1 3]" {
		t.Error(s)
	}
	again := load(t, AppendDump(nil, entry(Value{Kind: engine.KindDelayQueue, Object: q}), format), limits).Object.(*delayqueue.Queue)
	if again.Totals() != q.Totals() || again.Settings() != want || again.Len() != 3 {
		t.Error("written anew it is another queue")
	}
}

// queueVersion2 is the output of DUMP for a queue of encoding version 2: DQ.SET with LEASE 1000 TRIES 2 DEAD dead MAXLEN
// 9 and GROUPS CONC 3, of the entries a, b and c the first done and the second leased, and a schedule EVERY 300.
const queueVersion2 = "0781964bfeaae7ae780202010280000f4240020202000200020402020201020002000200020002050504646561640200020902000203050005000202" +
	"050163050270630243ea020302000200050508c096b10205096f6674656e40333033050170028000049bae02050200020005014002010501620502706202" +
	"80000f4a10020202010200050508c096b1020243e90200020105016105000280004c56f8020402000200050002000200020105056f6674656e0501700500" +
	"05000501400280000493e0024bb8024bb8028000049f98000c00c5dd049ed3ae0b52"

func TestQueueVersion2(t *testing.T) {
	q := queueOf(t, queueVersion2)
	var got []string
	q.Peek(delayqueue.Any, 2000, 9, func(e delayqueue.Entry) {
		got = append(got, fmt.Sprintf("%s %s %d %d", e.AppendName(nil), e.Payload, e.DueMicros, e.State))
	})
	if s := fmt.Sprint(got); s != "[c pc 1002 1 often@303 p 303000 2 b#1 pb 1001 3]" {
		t.Error(s)
	}
	if q.Remembered() != 1 || q.Behind() != 0 || len(q.Schedules()) != 1 || q.Settings().GroupConc != 3 {
		t.Errorf("%+v", q.Head())
	}
}
