package ratelimit

// What all limiter commands come down to: one call on one limiter.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

// call is one request on one limiter. The limiter's key is handed over beside
// it: it goes to places where it would take the rules to the heap with it.
type call struct {
	cost  int64
	mode  limiter.Mode
	rules []limiter.Rule // given with the call; may be none
	// cell: a cost above the capacity is refused, not an error, and 0 looks.
	cell bool
	// waits: who is refused gets in line instead, so that is not counted.
	waits bool
	// served: the line serves the call, which so is first in it; the limiter's
	// rules are those it has by now.
	served bool
}

// decide defines the limiter or changes it as the rules say, decides, and stores
// the outcome. e is what GetLimiter finds under the key. A text is an error, and nothing has changed then.
func (f *family) decide(c *command.Ctx, key []byte, e engine.Entry, q *call) (d limiter.Decision, text string) {
	if e.Ok() && e.Kind() != engine.KindLimiter {
		return d, command.ErrWrongType
	}
	var scratch [128]byte
	var p []byte
	fresh, changed := false, false
	if e.Ok() {
		p = e.Bytes(nil)
		fresh = c.Idle(e) // as good as none
	} else {
		fresh = true
	}
	switch {
	case fresh && len(q.rules) == 0:
		if e.Ok() {
			c.Delete(key)
		}
		return d, errNoLimiter
	case fresh:
		p = limiter.New(scratch[:0], q.rules, false)
	case len(q.rules) > 0 && !q.served && !limiter.HasRules(p, q.rules):
		p = limiter.Change(scratch[:0], p, q.rules, c.Now)
		changed = true
	}
	out, d, err := q.take(c, key, p)
	if err != nil {
		return d, textOf(err)
	}
	took := !d.Limited && q.mode != limiter.Peek && q.cost > 0
	if q.mode != limiter.Peek {
		stored := !fresh && !changed && len(out) == len(p)
		switch {
		case stored: // in place
		case fresh && !took: // a limiter with nothing in use is none
		case fresh:
			c.PutBytes(engine.KindLimiter, key, out, 0)
		default:
			c.PutBytes(engine.KindLimiter, key, out, e.Deadline())
		}
		if !q.waits || !d.Limited {
			f.count(c, d.Limited)
		}
		switch {
		case changed:
			c.Changed(key, engine.EventLimiter, "rl.set")
		case took:
			c.Changed(key, engine.EventLimiter, "rl.acquire")
		}
		if changed || took {
			c.EffectImage(key)
		}
	}
	return d, ""
}

// take decides on the limiter's bytes, the line before the caller included.
func (q *call) take(c *command.Ctx, key, p []byte) ([]byte, limiter.Decision, error) {
	if q.mode != limiter.Force && q.cost > 0 && !q.served {
		if n, weight := c.Waiting(key); n > 0 {
			return q.behind(c, p, weight)
		}
	}
	switch {
	case q.cell:
		return limiter.Throttle(p, c.Now, q.cost)
	case q.waits:
		// Peek first: who is going to wait is not counted as refused.
		if _, d, err := limiter.Take(p, c.Now, q.cost, limiter.Peek); err != nil || d.Limited {
			return p, d, err
		}
	}
	return limiter.Take(p, c.Now, q.cost, q.mode)
}

// behind refuses a call because others wait in line. How long it has to wait is
// then an estimate: until what they wait for, and this, have come back.
func (q *call) behind(c *command.Ctx, p []byte, weight int64) ([]byte, limiter.Decision, error) {
	if q.cost > limiter.Capacity(p) {
		if q.cell {
			return limiter.Throttle(p, c.Now, q.cost)
		}
		return p, limiter.Decision{}, limiter.ErrCapacity
	}
	_, d, err := limiter.Take(p, c.Now, q.cost, limiter.Peek)
	if err != nil {
		return p, d, err
	}
	after := append([]byte(nil), p...)
	if after, _, err = limiter.Take(after, c.Now, min(weight, limiter.CountMax), limiter.Force); err == nil {
		if _, later, _ := limiter.Take(after, c.Now, q.cost, limiter.Peek); later.Limited {
			d.RetryAfterMicros, d.Rule, d.Limit = later.RetryAfterMicros, later.Rule, later.Limit
		}
	}
	d.Limited = true
	d.RetryAfterMicros = max(d.RetryAfterMicros, 1)
	if q.mode == limiter.Try && !q.waits {
		limiter.CountRefused(p)
	}
	return p, d, nil
}
