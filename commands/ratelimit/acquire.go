package ratelimit

// RL.ACQUIRE, and waiting for a limiter.

import (
	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) acquireRow() *command.Command {
	return &command.Command{
		Name: "rl.acquire", Arity: -2, Group: command.GroupLimiter, Since: since,
		Flags:      fastWrite | command.Blocking,
		Keys:       []command.KeySpec{withShared(command.Key(1, writeKey|command.Insert))},
		Summary:    "Takes a cost from a limiter, or nothing, or waits in line for it.",
		Complexity: "O(1) for each rule, O(log N) with an ID; O(N) in the grants of a LOG that is waited for",
		Syntax:     "key [cost:integer] [mode=(PEEK | FORCE | ATMOST)] [KEEP keep:integer] [name={ID id:string [LEASE lease:integer]}] [BLOCK ms:integer] [rule=" + limiter.Syntax() + "]",
		Looks:      f.peeks,
		Run:        f.acquire,
	}
}

// peeks reports whether RL.ACQUIRE only looks.
func (f *family) peeks(args [][]byte) bool {
	if !says(args, "PEEK") {
		return false
	}
	a := command.ArgsOf(args[min(2, len(args)):]...)
	q, text := f.readRequest(nil, &a)
	return text == "" && q.mode == limiter.Peek
}

// says reports whether a word occurs among the arguments, in whatever role.
func says(args [][]byte, word string) bool {
	for _, a := range args {
		if len(a) == len(word) && command.EqualFold(a, word) {
			return true
		}
	}
	return false
}

// blockMillisMax is the longest wait that can be asked for, as for BLPOP.
const blockMillisMax = 1<<53 - 1

// request is what RL.ACQUIRE's arguments say.
type request struct {
	f *family
	call
	// block is how long to wait in ms, 0 for ever, -1 not at all.
	block int64
	// several is set for RL.MACQUIRE; each is set if the reply has the decision of each limiter.
	several, each bool
}

// readOptions reads what may stand between the costs and the rules.
func (q *request) readOptions(a *command.Args) {
	kept := false
	for again := true; again && a.More(); {
		switch {
		case q.mode == limiter.Try && a.Is("PEEK"):
			q.mode = limiter.Peek
		case q.mode == limiter.Try && a.Is("FORCE"):
			q.mode = limiter.Force
		case q.mode == limiter.Try && a.Is("ATMOST"):
			q.mode = limiter.AtMost
		case !kept && a.Is("KEEP"):
			kept = true
			q.keep = a.IntRange(0, limiter.CountMax, errCost)
		case q.id == nil && a.Is("ID"):
			if q.id = a.Bytes(); a.Err() == "" && limiter.CheckName(q.id) != nil {
				a.Fail(errName)
			}
		case q.lease == 0 && a.Is("LEASE"):
			q.lease = 1000 * a.IntRange(1, limiter.LeaseMicrosMax/1000, errLeaseRange)
		case q.block < 0 && a.Is("BLOCK"):
			if q.block = a.Int(); a.Err() == "" && q.block < 0 {
				a.Fail(command.ErrTimeoutNegative)
			} else if q.block > blockMillisMax {
				a.Fail(command.ErrTimeoutRange)
			}
		case q.several && !q.each && a.Is("EACH"):
			q.each = true
		default:
			again = false
		}
	}
	switch {
	case q.block >= 0 && (q.mode == limiter.Peek || q.mode == limiter.Force), // neither of them ever waits
		kept && q.mode == limiter.Force, // FORCE always takes, so KEEP would contradict it
		q.block >= 0 && q.each,          // a caller that has waited gets the decision of one limiter
		q.lease != 0 && q.id == nil,
		q.id != nil && q.mode == limiter.Peek:
		a.Syntax()
	}
}

// readRequest reads the arguments from the cost on.
func (f *family) readRequest(buf []limiter.Rule, a *command.Args) (q request, text string) {
	q.f, q.cost, q.block = f, 1, -1
	if a.More() && !startsOption(a.Peek()) {
		q.cost = a.Int()
	}
	q.readOptions(a)
	q.rules, text = readRules(buf, a)
	if text == "" && (q.cost < 0 || q.cost > limiter.CountMax) {
		text = errCost
	}
	return q, text
}

// startsOption reports whether a word begins an option or a rule, and so is no cost.
func startsOption(word []byte) bool {
	if len(word) == 0 || word[0] <= '9' {
		return false
	}
	if _, ok := limiter.AlgorithmOf(word); ok {
		return true
	}
	for _, option := range [...]string{"PEEK", "FORCE", "ATMOST", "KEEP", "ID", "LEASE", "BLOCK"} {
		if command.EqualFold(word, option) {
			return true
		}
	}
	return false
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
		kept, _ := f.readRequest(nil, &a) // a copy for the wait, so that q stays on the stack if the call does not wait
		kept.waits, kept.served, kept.late = true, true, true
		kept.wait(c, d)
	default:
		q.reply(c.Writer, d)
	}
}

// reply replies a decision: five integers, with ATMOST a sixth, how much was taken.
func (q *request) reply(w command.Replier, d limiter.Decision) {
	if q.mode == limiter.AtMost {
		w.Array(6)
		replyDecision(w, d, limiter.CeilMillis)
		w.Int(d.Taken)
		return
	}
	w.Array(5)
	replyDecision(w, d, limiter.CeilMillis)
}

// decide decides with the limiter under a key, whether it is a limiter or Redisson's hash.
func (q *request) decide(c *command.Ctx, key []byte) (d limiter.Decision, text string) {
	return q.call.on(q.f, c, key, find(c, key))
}

// find finds the limiter for a request. PEEK finds it as commands that read do, because replicas run PEEK too.
func find(c *command.Ctx, key []byte) engine.Entry {
	if !c.Writes {
		return c.Get(key)
	}
	return c.GetLimiter(key)
}

// wait puts the caller in line, with a copy of the request.
func (q *request) wait(c *command.Ctx, d limiter.Decision) {
	w := c.NewWait(q, engine.KindLimiter, q.deadline(c))
	if q.id != nil {
		a := command.ArgsOf(w.Args[2:]...)
		own, _ := q.f.readRequest(nil, &a)
		q.id = own.id // the caller's memory will be reused
	}
	w.Keys, w.Weight = w.Args[1:2], q.least()
	w.Lapsed = func(out command.Replier) {
		q.reply(out, q.lapsed(w, w.Keys[0], &q.call))
	}
	block(c, w, d)
}

// deadline is when a wait that begins now ends, 0 for never.
func (q *request) deadline(c *command.Ctx) int64 {
	if q.block == 0 {
		return 0
	}
	return c.Now + q.block*1000
}

// block begins a wait for a limiter that refused with decision d.
func block(c *command.Ctx, w *command.Wait, d limiter.Decision) {
	before, _ := c.Waiting(w.Keys[0], engine.KindLimiter)
	c.Block(w)
	if before == 0 && d.RetryAfterMicros >= 0 {
		c.Alarm(w.Keys[0], c.Now+d.RetryAfterMicros)
	}
}

// Try repeats the request of the first waiter in line.
func (q *request) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	d, text := q.decide(c, key)
	switch {
	case text != "":
		c.Error(text)
	case d.Limited:
		return engine.ServedHold, retryAt(c, d)
	default:
		q.reply(c.Writer, d)
	}
	return engine.ServedDone, 0
}

// retryAt is when a retry may succeed, 0 if that is unknown.
func retryAt(c *command.Ctx, d limiter.Decision) int64 {
	if d.RetryAfterMicros < 0 {
		return 0
	}
	return c.Now + d.RetryAfterMicros
}

// lapsed is the decision for a caller that has left the line of a key without a grant: the limiter's present state.
// The caller of lapsed holds no lock.
func (q *request) lapsed(w *command.Wait, key []byte, asked *call) limiter.Decision {
	d := limiter.Decision{Limited: true, RetryAfterMicros: -1}
	ks := w.KS
	ks.TryUpdate(engine.LocksOf(key, suffixed(key, ":value"), suffixed(key, ":permits")), func(v *engine.View) { // the key may have expired
		v.DB = w.DB
		c := w.Ctx(*v)
		defer func() { *v = c.View }()
		switch e := c.GetLimiter(key); e.Kind() {
		case engine.KindHash:
			if s, text := openShared(&c, key); text == "" {
				d = s.refusal(c.Now / 1000)
			}
		case engine.KindLimiter:
			p := e.Bytes(nil)
			peek := limiter.Call{Cost: asked.least(), Mode: limiter.Peek, Keep: asked.keep}
			if _, now, err := budget.NamedOf(e).Decide(p, c.Now, peek); err == nil {
				d = now
			}
			d.Limited, d.Taken = true, 0
			c.CountRefused(e)
		}
	})
	q.f.s.Prefixes.Limiter(key, 0, false)
	return d
}
