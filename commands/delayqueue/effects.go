package delayqueue

// The effects of queues: what became of entries, at a given time. Journals have
// them as DQ.APPLY, which clients cannot call; whatever a command of clients was
// asked for, these say what it did, so applying them again does the same.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
)

// The words of DQ.APPLY.
const (
	wordAdd    = "ADD"    // id due payload
	wordPop    = "POP"    // lease n
	wordAck    = "ACK"    // name...
	wordRem    = "REM"    // name...
	wordNack   = "NACK"   // delay dead name...
	wordTouch  = "TOUCH"  // until name...
	wordSettle = "SETTLE" // n: leases that had run out
	wordBury   = "BURY"   // n: dying entries that left for the dead-letter queue
	wordSet    = "SET"    // lease tries dead backoff backoff-max
)

// logged begins an effect at the view's time, of n arguments behind the word, which
// the caller appends. Numbers are in microseconds. The command that runs has no
// other effect then. While Logging only.
func logged(v *engine.View, key []byte, word string, n int) engine.Words {
	v.NoEffect() // but this one
	w := v.Words(4 + n)
	w.Text("DQ.APPLY")
	w.Bytes(key)
	w.Int(v.Now)
	w.Text(word)
	return w
}

// settled tells that the keyspace ended leases.
func settled(v *engine.View, key []byte, n int) {
	v.Besides([]byte("DQ.APPLY"), key, command.Number(v.Now), []byte(wordSettle), command.Number(int64(n)))
}

func (f *family) applyRow() *command.Command {
	return &command.Command{
		Name: "dq.apply", Arity: -4, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Applied,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Does again what a journal tells of a delay queue.",
		Complexity: "O(log N) for each entry",
		Syntax:     "key unix-us:integer word:string argument:string...",
		Run:        f.apply,
	}
}

// errApply is for what no journal of ours has.
const errApply = "ERR this is no effect of a delay queue"

func (f *family) apply(c *command.Ctx) {
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	a := c.Cursor(2)
	now := a.Int()
	word := string(a.Bytes())
	if q == nil && (word == wordAdd || word == wordSet) {
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
		id, due := a.Bytes(), a.Int()
		q.Add(id, a.Bytes(), due, delayqueue.Put)
	case wordPop:
		lease, n := a.Int(), a.Int()
		q.Pop(now, lease, int(n), func(delayqueue.Entry) {})
	case wordSettle:
		q.Settle(now, int(a.Int()), nil)
	case wordBury:
		q.TakeDying(int(a.Int()), func(delayqueue.Entry) {})
	case wordSet:
		s := delayqueue.Settings{LeaseMicros: a.Int(), Tries: a.Int(), Dead: string(a.Bytes()), BackoffMicros: a.Int()}
		s.BackoffMaxMicros = a.Int()
		q.Configure(s)
	case wordAck:
		each = func(id []byte, attempt int64) bool { return q.Ack(id, attempt, now) }
	case wordRem:
		each = q.Remove
	case wordNack:
		delay, dead := a.Int(), a.Int() != 0
		each = func(id []byte, attempt int64) bool { return q.Nack(id, attempt, now, delay, dead) }
	case wordTouch:
		until := a.Int()
		each = func(id []byte, attempt int64) bool { return q.Touch(id, attempt, now, until) }
	default:
		a.Fail(errApply)
	}
	for each != nil && a.More() {
		each(delayqueue.ParseName(a.Bytes()))
	}
	if a.Failed(c) {
		return
	}
	rearm(&c.View, key)
	c.Changed(key, engine.EventDelayQueue, "dq.apply")
	if q.Forwarding() {
		c.ForwardSoon(key)
	}
	if q.Empty() {
		c.Delete(key)
	}
	c.OK()
}
