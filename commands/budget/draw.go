// Package budget, internal to the server, takes from the limiter under a key for families other than the limiters'
// own: each delivery of a queue takes one. It also writes the effects of limiters, for those families and the limiters.
package budget

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

// Why nothing can be taken.
const (
	ErrNone  = "NOLIMITER the queue's limiter is not there, define it with RL.SET"
	ErrType  = "WRONGTYPE the queue's LIMIT names a key that is no limiter"
	ErrLease = "ERR the queue's limiter has CONC, so entries can be taken with a LEASE only"
)

// Draw takes units, one at a time, from the limiter under a key, whose lock the command holds. End stores and logs
// them.
type Draw struct {
	c     *command.Ctx
	key   []byte
	entry engine.Entry
	named *limiter.Named
	bytes []byte // the limiter's state
	lease int64
	conc  bool // a rule is CONC, so each unit needs a named grant
	fresh bool // named is not stored yet
	long  bool // the effect is what was taken, not the limiter's new state
	line  bool // others wait for the limiter
	last  limiter.Decision
	names [][]byte
	taken int
}

// Begin begins to take from the limiter under a key. leaseMicros is the lease of the grants, 0 for none. first says
// that nobody in the limiter's line comes before the caller.
func Begin(c *command.Ctx, key []byte, leaseMicros int64, first bool) (d *Draw, text string) {
	e := c.GetLimiter(key)
	switch {
	case !e.Ok() || e.Kind() == engine.KindLimiter && c.Idle(e):
		return nil, ErrNone
	case e.Kind() != engine.KindLimiter:
		return nil, ErrType
	}
	d = &Draw{c: c, key: key, entry: e, named: NamedOf(e), lease: leaseMicros}
	if d.bytes = e.Bytes(nil); d.named != nil {
		d.bytes = d.named.State()
	}
	d.long = limiter.Long(d.bytes, c.Now)
	if d.conc = limiter.NeedsLease(d.bytes); d.conc && leaseMicros == 0 {
		return nil, ErrLease
	}
	if !first {
		waiting, _ := c.Waiting(key, engine.KindLimiter)
		shadow, _ := limiter.Shadow(d.bytes)
		d.line = waiting > 0 && !shadow
	}
	return d, ""
}

// Take takes one unit, if there is one. If the caller waits otherwise, that is not counted as refused.
func (d *Draw) Take(waits bool) bool {
	if !d.line && (!d.conc || d.named == nil || d.named.Room(1)) {
		call := limiter.Call{Cost: 1, Mode: limiter.Peek, Lease: d.lease > 0}
		if _, seen, err := d.named.Decide(d.bytes, d.c.Now, call); err == nil && !seen.Limited {
			call.Mode = limiter.Try
			d.take(call)
			return true
		}
	}
	if !waits {
		d.bytes = limiter.CountRefused(d.bytes)
		if d.named != nil {
			d.named.SetState(d.bytes)
		} else {
			d.entry = d.c.Refused(d.entry, d.bytes)
			d.bytes = d.entry.Bytes(nil)
		}
	}
	return false
}

// take takes one unit, which is known to fit.
func (d *Draw) take(call limiter.Call) {
	if d.conc && d.named == nil {
		d.named, d.fresh = limiter.NewNamed(bytes.Clone(d.bytes)), true
		d.bytes = d.named.State()
	}
	p, got, _ := d.named.Decide(d.bytes, d.c.Now, call)
	switch {
	case d.named != nil:
		d.named.SetState(p)
	case len(p) != len(d.bytes): // a log that grew
		d.entry = d.c.PutBytes(engine.KindLimiter, d.key, p, d.entry.Deadline())
		p = d.entry.Bytes(nil)
	}
	d.bytes, d.last = p, got
	d.taken++
}

// Holds reports whether each unit needs a named grant.
func (d *Draw) Holds() bool { return d.conc }

// Name names the grant of the unit that was taken last. It is open until its lease ends, or Settle.
func (d *Draw) Name(name []byte) {
	if d.named.Has(name) { // left by an earlier queue of that name
		d.named.Close(name, d.c.Now, -1)
	}
	d.named.Open(name, d.c.Now, d.lease, &d.last)
	d.bytes = d.named.State()
	d.names = append(d.names, name)
}

// End stores and logs what was taken.
func (d *Draw) End() {
	c := d.c
	if d.taken == 0 {
		return
	}
	switch {
	case d.fresh:
		c.PutNamed(d.key, d.named, d.entry.Deadline())
	case d.conc:
		c.InnerDue(d.entry)
	}
	c.Changed(d.key, engine.EventLimiter, "rl.acquire")
	switch {
	case d.fresh:
		c.EffectImage(d.key)
	case d.long:
		Taken(&c.View, d.key, 1, int64(d.taken), d.named, d.names...)
	default:
		Effect(&c.View, d.key, d.named, d.names...)
	}
}

// Peek reports whether the limiter under a key would refuse one unit, and when a retry may succeed, 0 if that is
// unknown. ok is false if there is no limiter.
func Peek(v *engine.View, key []byte) (refused bool, againMicros int64, ok bool) {
	e := v.GetLimiter(key)
	if e.Kind() != engine.KindLimiter {
		return false, 0, false
	}
	n := NamedOf(e)
	p := e.Bytes(nil)
	if n != nil {
		p = n.State()
	}
	_, d, err := n.Decide(p, v.Now, limiter.Call{Cost: 1, Mode: limiter.Peek})
	switch {
	case err != nil || !d.Limited:
		return false, 0, true
	case d.RetryAfterMicros < 0:
		return true, 0, true
	}
	return true, v.Now + d.RetryAfterMicros, true
}

// Settle ends the named grants of the limiter under a key, whose lock is held.
func Settle(v *engine.View, key []byte, names [][]byte) {
	ended(v, key, names, func(n *limiter.Named, name []byte) bool {
		_, ok, err := n.Close(name, v.Now, -1)
		return ok && err == nil
	}, "rl.settle")
}

// Touch renews the leases of named grants: they end leaseMicros from now.
func Touch(v *engine.View, key []byte, names [][]byte, leaseMicros int64) {
	ended(v, key, names, func(n *limiter.Named, name []byte) bool { return n.Touch(name, v.Now, leaseMicros) }, "rl.touch")
}

// ended does something to each named grant, and logs those that changed.
func ended(v *engine.View, key []byte, names [][]byte, do func(n *limiter.Named, name []byte) bool, event string) {
	e := v.GetWrite(key)
	n := NamedOf(e)
	if n == nil {
		return
	}
	var changed [][]byte
	for _, name := range names {
		if do(n, name) {
			changed = append(changed, name)
		}
	}
	if changed == nil {
		return
	}
	v.Bared(e)
	v.Changed(key, engine.EventLimiter, event)
	Effect(v, key, n, changed...)
}
