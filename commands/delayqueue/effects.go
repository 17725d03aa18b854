package delayqueue

// The effects of queues: what happened to entries, and when. Journals store them as DQ.APPLY, which clients cannot call. An
// effect says what a command did, whatever the client asked for, so applying it again does the same.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
)

// The words of DQ.APPLY.
const (
	wordAdd    = "ADD"    // id due payload [extra [attempt]]
	wordPop    = "POP"    // lease n
	wordTake   = "TAKE"   // lease id...: a POP that names its entries
	wordAck    = "ACK"    // name...
	wordRem    = "REM"    // name...
	wordNack   = "NACK"   // delay dead name...
	wordFail   = "FAIL"   // reason delay dead name...
	wordTouch  = "TOUCH"  // until name...
	wordSettle = "SETTLE" // n: how much happened by itself, such as leases that ended
	wordBury   = "BURY"   // n: dying entries that left for the dead-letter queue
	wordPlan   = "PLAN"   // id every cron zone payload extra: a schedule
	wordReplan = "REPLAN" // id every cron zone payload extra: of a schedule that keeps its times
	wordSet    = "SET"    // lease tries dead backoff backoff-max [maxlen paused conc rules [limit]]
)

// logged begins an effect at the view's time, with n arguments after the word, which the caller appends. Numbers are in
// microseconds. The running command itself is then not logged. Call logged only while Logging.
func logged(v *engine.View, key []byte, word string, n int) engine.Words {
	v.NoEffect() // only effects like this one
	w := v.Words(4 + n)
	w.Text("DQ.APPLY")
	w.Bytes(key)
	w.Int(v.Now)
	w.Text(word)
	return w
}

// settled logs what the keyspace did by itself when its time had come.
func settled(v *engine.View, key []byte, n int) {
	v.LogSystem([]byte("DQ.APPLY"), key, command.Number(v.Now), []byte(wordSettle), command.Number(int64(n)))
}

func (f *family) applyRow() *command.Command {
	return &command.Command{
		Name: "dq.apply", Arity: -4, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Applied,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Does again what a journal tells of a delay queue.",
		Complexity: "O(log N) for each entry",
		Syntax:     "key unix-us:integer word:string argument:string...",
		Run:        f.apply,
	}
}

// moment, period and count read the times, durations and counts of effects; times and durations are in microseconds. They
// enforce the same bounds on journals as on files.
func moment(a *command.Args) int64 { return within(a, 0, delayqueue.TimeMax) }

func period(a *command.Args) int64 { return within(a, 0, delayqueue.SpanMax) }

func count(a *command.Args) int64 { return within(a, 0, 1<<62) }

// within reads an integer, and returns 0 for a wrong one.
func within(a *command.Args, lo, hi int64) int64 {
	n := a.IntRange(lo, hi, errApply)
	if a.Err() != "" {
		return 0
	}
	return n
}

// errApply is the error for arguments that no journal of this server contains.
const errApply = "ERR this is no effect of a delay queue"

func (f *family) apply(c *command.Ctx) {
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	a := c.Cursor(2)
	now := moment(&a)
	word := string(a.Bytes())
	if a.Failed(c) {
		return
	}
	if q == nil && (word == wordAdd || word == wordSet || word == wordPlan) {
		q = delayqueue.New()
		c.PutObject(key, engine.KindDelayQueue, q, 0)
	}
	if q == nil {
		c.Error(errApply)
		return
	}
	var each func(id []byte, attempt int64) bool
	switch word {
	case wordAdd:
		id, due, payload := a.Bytes(), moment(&a), a.Bytes()
		var x *delayqueue.Extra
		if a.More() {
			given, err := delayqueue.ParseExtra(a.Bytes())
			if x = &given; err != nil {
				a.Fail(errApply)
			}
		}
		attempt := int64(0)
		if a.More() {
			attempt = count(&a)
		}
		if a.Err() != "" || !delayqueue.IDStored(id) {
			a.Fail(errApply)
			break
		}
		q.Bury(now, id, payload, due, attempt, x)
	case wordPlan, wordReplan:
		s := delayqueue.Schedule{ID: a.Bytes(), EveryMicros: period(&a), Cron: string(a.Bytes()), Zone: string(a.Bytes()), Payload: a.Bytes()}
		x, err := delayqueue.ParseExtra(a.Bytes())
		if err == nil {
			err = delayqueue.CheckID(s.ID)
		}
		switch s.Extra = x; {
		case a.Err() != "" || err != nil:
		case word == wordPlan:
			_, err = q.Schedule(now, &s, delayqueue.Put)
		case !q.Replan(&s):
			a.Fail(errApply)
		}
		if err != nil {
			a.Fail(errApply)
		}
	case wordPop:
		lease, n := period(&a), count(&a)
		q.Pop(now, lease, int(n), func(delayqueue.Entry) {})
	case wordTake:
		lease := period(&a)
		each = func(id []byte, _ int64) bool { return q.Take(id, now, lease) }
	case wordSettle:
		q.Settle(now, int(count(&a)), nil)
	case wordBury:
		q.TakeDying(now, int(count(&a)), func(delayqueue.Entry) {})
	case wordSet:
		s := delayqueue.Settings{LeaseMicros: period(&a), Tries: count(&a), Dead: string(a.Bytes()), BackoffMicros: period(&a)}
		s.BackoffMaxMicros = period(&a)
		if a.More() {
			s.MaxLen, s.Paused, s.GroupConc = count(&a), a.Int() != 0, count(&a)
			if s.GroupRules = string(a.Bytes()); s.GroupRules != "" {
				if _, err := delayqueue.ParseRules(s.GroupRules); err != nil {
					a.Fail(errApply)
					break
				}
			}
			if a.More() {
				s.Limit = string(a.Bytes())
			}
		}
		if a.Err() == "" {
			q.Configure(s)
		}
	case wordAck:
		each = func(id []byte, attempt int64) bool { return q.Ack(id, attempt, now) }
	case wordRem:
		each = func(id []byte, attempt int64) bool { return q.Remove(id, attempt, now) }
	case wordNack, wordFail:
		var reason []byte
		if word == wordFail {
			reason = a.Bytes()
		}
		delay, dead := within(&a, delayqueue.ByBackoff, delayqueue.SpanMax), a.Int() != 0
		if len(reason) > delayqueue.ReasonBytesMax {
			a.Fail(errApply)
		}
		each = func(id []byte, attempt int64) bool { return q.Nack(id, attempt, now, delay, dead, reason) }
	case wordTouch:
		until := moment(&a)
		each = func(id []byte, attempt int64) bool { return q.Touch(id, attempt, now, until) }
	default:
		a.Fail(errApply)
	}
	for each != nil && a.Err() == "" && a.More() {
		each(delayqueue.ParseName(a.Bytes()))
	}
	if a.Failed(c) {
		return
	}
	rearm(&c.View, key, q)
	c.Changed(key, engine.EventDelayQueue, "dq.apply")
	if q.Forwarding() {
		c.ForwardSoon(key)
	}
	if q.Empty() {
		c.Delete(key)
	}
	c.OK()
}
