package ratelimit

// One call on one limiter: all limiter commands use it.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

// call is one request on one limiter. The limiter's key is a separate parameter: it escapes to the heap, and as a
// field it would make the rules escape with it.
type call struct {
	cost  int64
	mode  limiter.Mode
	rules []limiter.Rule // given with the call; may be none
	// keep is how much has to remain.
	keep int64
	// id names the grant, nil if it has no name. lease is how long the grant is open, in microseconds; 0 means until
	// its windows end.
	id    []byte
	lease int64
	// cell is set for redis-cell's commands: a cost above the capacity is refused instead of being an error, and a
	// cost of 0 only looks.
	cell bool
	// waits is set if a refused caller gets in line: that is not counted as refused.
	waits bool
	// served is set if the line serves the call, which is then first in it. late is set after a wait: the call then
	// leaves an existing limiter's rules as they are.
	served, late bool
}

// on decides with the entry that GetLimiter finds under a key: a limiter, or Redisson's hash.
func (q *call) on(f *family, c *command.Ctx, key []byte, e engine.Entry) (d limiter.Decision, text string) {
	if e.Kind() == engine.KindHash {
		return f.decideShared(c, key, q)
	}
	return f.decide(c, key, e, q)
}

// decide defines the limiter or changes its rules as the call says, decides, and stores the outcome. e is the entry
// that GetLimiter finds under the key. A text is an error; nothing has changed then.
func (f *family) decide(c *command.Ctx, key []byte, e engine.Entry, q *call) (d limiter.Decision, text string) {
	if e.Ok() && e.Kind() != engine.KindLimiter {
		return d, command.ErrWrongType
	}
	if n := budget.NamedOf(e); n != nil {
		return f.decideNamed(c, key, e, n, q)
	}
	p, fresh, changed := q.define(c, e)
	if fresh && len(q.rules) == 0 {
		if e.Ok() && c.Writes {
			c.Delete(key)
		}
		return d, errNoLimiter
	}
	long := !fresh && !changed && q.id == nil && limiter.Long(p, c.Now)
	out, d, err := q.take(c, key, p, nil)
	if err != nil {
		return d, textOf(err)
	}
	if q.mode == limiter.Peek {
		return d, ""
	}
	took := !d.Limited && d.Taken > 0
	opened := !d.Limited && q.id != nil
	switch stored := !fresh && !changed && len(out) == len(p); {
	case opened:
		n := limiter.NewNamed(bytes.Clone(out))
		n.Open(q.id, c.Now, q.lease, &d)
		c.PutNamed(key, n, deadlineOf(e, fresh))
	case stored: // in place
	case fresh && !took: // a limiter with nothing in use is not stored
	case d.Limited && !changed:
		c.Refused(e, out)
	default:
		e = c.PutBytes(engine.KindLimiter, key, out, deadlineOf(e, fresh))
	}
	switch {
	case !f.done(c, key, q, d, changed):
	case opened:
		c.EffectImage(key)
	case long:
		budget.Taken(&c.View, key, d.Taken, 1, nil)
	default:
		budget.Became(&c.View, e)
	}
	return d, ""
}

// define returns the limiter that the call works on: the one under the key, the same with other rules, or a new one.
// p is valid until the view's scratch memory is used again.
func (q *call) define(c *command.Ctx, e engine.Entry) (p []byte, fresh, changed bool) {
	other := c.Scratch()
	switch {
	case !e.Ok() || c.Idle(e): // an idle limiter counts as none
		fresh, *other = true, limiter.New((*other)[:0], q.rules, false)
	case len(q.rules) > 0 && !q.late && !limiter.HasRules(e.Bytes(nil), q.rules):
		changed, *other = true, limiter.Change((*other)[:0], e.Bytes(nil), q.rules, c.Now)
	default:
		return e.Bytes(nil), false, false
	}
	return *other, fresh, changed
}

// done counts a decision and announces what it changed. It reports whether the change must be logged.
func (f *family) done(c *command.Ctx, key []byte, q *call, d limiter.Decision, changed bool) bool {
	if !q.waits || !d.Limited {
		f.count(c, key, d.Limited)
	}
	switch {
	case changed:
		c.Changed(key, engine.EventLimiter, "rl.set")
	case !d.Limited && (d.Taken > 0 || q.id != nil):
		c.Changed(key, engine.EventLimiter, "rl.acquire")
	default:
		return false
	}
	return true
}

// decideNamed is decide for a limiter with open named grants.
func (f *family) decideNamed(c *command.Ctx, key []byte, e engine.Entry, n *limiter.Named, q *call) (d limiter.Decision, text string) {
	if q.id != nil {
		if d, ok := f.again(c, key, e, n, q); ok {
			return d, ""
		}
		if !n.Room(q.cost) {
			return d, errNamed
		}
	}
	p := n.State()
	changed := len(q.rules) > 0 && !q.late && !limiter.HasRules(p, q.rules)
	if changed {
		p = n.StateFor(q.rules, c.Now)
	}
	long := !changed && limiter.Long(p, c.Now)
	p, d, err := q.take(c, key, p, n)
	switch {
	case err != nil:
		return d, textOf(err)
	case q.mode == limiter.Peek:
		return d, ""
	case changed:
		n.Rebase(q.rules, c.Now)
	}
	n.SetState(p)
	if q.id != nil && !d.Limited {
		n.Open(q.id, c.Now, q.lease, &d)
		c.InnerDue(e)
	}
	switch {
	case !f.done(c, key, q, d, changed):
	case long:
		budget.Taken(&c.View, key, d.Taken, 1, n, q.id)
	default:
		budget.Effect(&c.View, key, n, q.id)
	}
	return d, ""
}

// deadlineOf is the deadline that a limiter keeps.
func deadlineOf(e engine.Entry, fresh bool) int64 {
	if fresh {
		return 0
	}
	return e.Deadline()
}

// again handles a request whose grant is already open. It takes nothing, renews the lease, and replies as the first
// time.
func (f *family) again(c *command.Ctx, key []byte, e engine.Entry, n *limiter.Named, q *call) (d limiter.Decision, ok bool) {
	lease := q.lease
	if q.mode == limiter.Peek {
		lease = 0
	}
	if d, ok = n.Find(q.id, c.Now, lease); !ok {
		return d, false
	}
	if d.Shadowed {
		d.Taken = q.cost
	}
	if lease > 0 {
		c.InnerDue(e)
		c.Changed(key, engine.EventLimiter, "rl.touch")
		budget.Effect(&c.View, key, n, q.id)
	}
	return d, true
}

// ask calls the kernel.
func (q *call) ask(c *command.Ctx, p []byte, n *limiter.Named, cost int64, mode limiter.Mode) ([]byte, limiter.Decision, error) {
	if n == nil && q.keep == 0 && q.id == nil {
		return limiter.Take(p, c.Now, cost, mode)
	}
	return n.Decide(p, c.Now, limiter.Call{Cost: cost, Mode: mode, Keep: q.keep, Lease: q.lease > 0})
}

// least is the smallest cost that is worth a grant.
func (q *call) least() int64 {
	if q.mode == limiter.AtMost {
		return min(q.cost, 1)
	}
	return q.cost
}

// take decides on the limiter's bytes. Callers that already wait in line come first.
func (q *call) take(c *command.Ctx, key, p []byte, n *limiter.Named) ([]byte, limiter.Decision, error) {
	if q.mode != limiter.Force && q.cost > 0 && !q.served {
		if line, weight := c.Waiting(key, engine.KindLimiter); line > 0 {
			if shadow, _ := limiter.Shadow(p); !shadow {
				return q.behind(c, p, n, weight)
			}
		}
	}
	switch {
	case q.cell:
		return limiter.Throttle(p, c.Now, q.cost)
	case q.waits:
		// Peek first: a caller that will wait is not counted as refused.
		if _, d, err := q.ask(c, p, n, q.least(), limiter.Peek); err != nil {
			return p, d, err
		} else if d.Limited {
			return p, d, q.leaseless(p)
		}
	}
	return q.ask(c, p, n, q.cost, q.mode)
}

// leaseless is the error of a call that can never succeed because it has no lease.
func (q *call) leaseless(p []byte) error {
	if q.lease == 0 && q.cost > 0 && q.mode != limiter.Peek && limiter.NeedsLease(p) {
		return limiter.ErrLease
	}
	return nil
}

// behind refuses a call because others wait in line. Its retry time is an estimate: when both what the others wait
// for and what this call asks for have come back.
func (q *call) behind(c *command.Ctx, p []byte, n *limiter.Named, weight int64) ([]byte, limiter.Decision, error) {
	if q.cell && q.cost > limiter.Capacity(p) {
		return limiter.Throttle(p, c.Now, q.cost)
	}
	_, d, err := q.ask(c, p, n, q.least(), limiter.Peek)
	if err == nil {
		err = q.leaseless(p)
	}
	if err != nil {
		return p, d, err
	}
	d.Limited, d.Taken = true, 0
	after := append([]byte(nil), p...)
	force := limiter.Call{Cost: min(weight, limiter.CountMax), Mode: limiter.Force, Lease: true}
	if after, _, err = n.Decide(after, c.Now, force); err == nil {
		if _, later, _ := q.ask(c, after, n, q.least(), limiter.Peek); later.Limited {
			d.RetryAfterMicros, d.Rule, d.Limit = later.RetryAfterMicros, later.Rule, later.Limit
			if later.RetryAfterMicros < 0 { // the time is unknown
				return q.refused(p, d)
			}
		}
	}
	d.RetryAfterMicros = max(d.RetryAfterMicros, 1)
	return q.refused(p, d)
}

// refused counts a call that is refused because others wait.
func (q *call) refused(p []byte, d limiter.Decision) ([]byte, limiter.Decision, error) {
	if q.mode != limiter.Peek && !q.waits {
		p = limiter.CountRefused(p)
	}
	return p, d, nil
}
