package ratelimit

// RL.ACQUIRE, and waiting for a limiter.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/resp"
)

func (f *family) acquireRow() *command.Command {
	return &command.Command{
		Name: "rl.acquire", Arity: -2, Group: command.GroupLimiter, Since: since,
		Flags:      fastWrite | command.Blocking,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Insert)},
		Summary:    "Takes a cost from a limiter, or nothing, or waits in line for it.",
		Complexity: "O(1) for each rule; O(N) in the grants of a LOG that is waited for",
		Syntax:     "key [cost:integer] [mode=(PEEK | FORCE)] [BLOCK ms:integer] [rule={algorithm=(GCRA | LOG | WINDOW | FIXED) count:integer period:integer [BURST burst:integer]}...]",
		Run:        f.acquire,
	}
}

// blockMillisMax is the longest wait that can be asked for, as for BLPOP.
const blockMillisMax = 1<<53 - 1

// request is what RL.ACQUIRE's arguments say.
type request struct {
	f *family
	call
	// block is how long to wait in ms, 0 for ever, -1 not at all.
	block int64
}

// readRequest reads the arguments from the cost on.
func (f *family) readRequest(buf []limiter.Rule, a *command.Args) (q request, text string) {
	q.f, q.cost, q.block = f, 1, -1
	if a.More() && !startsOption(a.Peek()) {
		q.cost = a.Int()
	}
	for again := true; again && a.More(); {
		switch {
		case q.mode == limiter.Try && a.Is("PEEK"):
			q.mode = limiter.Peek
		case q.mode == limiter.Try && a.Is("FORCE"):
			q.mode = limiter.Force
		case q.block < 0 && a.Is("BLOCK"):
			if q.block = a.Int(); a.Err() == "" && q.block < 0 {
				a.Fail(command.ErrTimeoutNegative)
			} else if q.block > blockMillisMax {
				a.Fail(command.ErrTimeoutRange)
			}
		default:
			again = false
		}
	}
	if q.block >= 0 && q.mode != limiter.Try {
		a.Syntax() // neither ever waits
	}
	q.rules, text = readRules(buf, a)
	if text == "" && (q.cost < 0 || q.cost > limiter.CountMax) {
		text = errCost
	}
	return q, text
}

// startsOption tells a word that may follow the key from a cost.
func startsOption(word []byte) bool {
	if _, ok := limiter.AlgorithmOf(word); ok {
		return true
	}
	return command.EqualFold(word, "PEEK") || command.EqualFold(word, "FORCE") || command.EqualFold(word, "BLOCK")
}

func (f *family) acquire(c *command.Ctx) {
	var buf [limiter.RulesMax]limiter.Rule
	a := c.Cursor(2)
	q, text := f.readRequest(buf[:0], &a)
	if text != "" {
		c.Error(text)
		return
	}
	q.waits = q.block >= 0 && c.CanBlock()
	d, text := q.decide(c, c.Args[1])
	switch {
	case text != "":
		c.Error(text)
	case d.Limited && q.waits:
		a := c.Cursor(2)
		kept, _ := f.readRequest(nil, &a) // q is not kept, so that it is on the stack where nobody waits
		kept.waits, kept.served = true, true
		kept.wait(c, d)
	default:
		c.Array(5)
		replyDecision(c, d)
	}
}

// decide decides by the limiter under a key, whichever it is.
func (q *request) decide(c *command.Ctx, key []byte) (d limiter.Decision, text string) {
	e := c.GetLimiter(key)
	if e.Kind() == engine.KindHash {
		return q.f.decideShared(c, key, &q.call)
	}
	return q.f.decide(c, key, e, &q.call)
}

// wait puts the caller in line. The request is kept.
func (q *request) wait(c *command.Ctx, d limiter.Decision) {
	deadline := int64(0)
	if q.block > 0 {
		deadline = c.Now + q.block*1000
	}
	w := c.NewWait(q, engine.KindLimiter, deadline)
	w.Keys, w.Weight = w.Args[1:2], q.cost
	w.Lapsed = func(out *resp.Writer) { q.lapsed(out, w) }
	before, _ := c.Waiting(w.Keys[0])
	c.Block(w)
	if before == 0 {
		c.Alarm(w.Keys[0], c.Now+d.RetryAfterMicros)
	}
}

// Try tries for the first in line.
func (q *request) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	d, text := q.decide(c, key)
	switch {
	case text != "":
		c.Error(text)
	case d.Limited:
		return engine.ServedHold, c.Now + d.RetryAfterMicros
	default:
		c.Array(5)
		replyDecision(c, d)
	}
	return engine.ServedDone, 0
}

// lapsed replies to a caller that has left the line without anything: how the
// limiter stands now. No lock is held here.
func (q *request) lapsed(out *resp.Writer, w *command.Wait) {
	d := limiter.Decision{Limited: true, RetryAfterMicros: -1}
	ks, key := w.KS, w.Keys[0]
	var set engine.LockSet
	set.AddKey(key)
	if h := ks.Lock(set); h == nil {
		v := engine.View{KS: ks, DB: w.DB, Now: ks.Clock.Now(), Held: set}
		if e := v.GetLimiter(key); e.Kind() == engine.KindLimiter {
			p := e.Bytes(nil)
			if _, now, err := limiter.Take(p, v.Now, q.cost, limiter.Peek); err == nil {
				d = now
			}
			d.Limited = true
			limiter.CountRefused(p)
		}
		v.Commit() // the key may have expired
		v.ServeReady()
		v.Account()
		ks.Unlock(set)
	}
	q.f.totals[0].refused.Add(1)
	out.Array(5)
	replyDecision(out, d)
}
