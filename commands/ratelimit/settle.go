package ratelimit

// RL.SETTLE, RL.TOUCH and RL.RELEASE, for costs that were granted.

import (
	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) settleRow() *command.Command {
	return &command.Command{
		Name: "rl.settle", Arity: -3, Group: command.GroupLimiter, Since: sinceNamed,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Ends a named grant with what it really cost.",
		Complexity: "O(log N) in the grants that are open, for each rule; O(N) in the grants of a LOG",
		Syntax:     "key id:string [actual:integer]",
		Run:        f.settle,
	}
}

// settle ends a named grant.
func (f *family) settle(c *command.Ctx) {
	a := c.Cursor(2)
	id := a.Bytes()
	actual := int64(-1)
	if a.More() {
		actual = a.IntRange(0, limiter.CountMax, errCost)
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindLimiter)
	if !ok {
		return
	}
	n := budget.NamedOf(e)
	if n == nil {
		c.Null()
		return
	}
	back, ok, err := n.Close(id, c.Now, actual)
	switch {
	case err != nil:
		c.Error(textOf(err))
		return
	case !ok:
		c.Null()
		return
	}
	f.settled.Add(1)
	c.Bared(e)
	c.Changed(key, engine.EventLimiter, "rl.settle")
	budget.Effect(&c.View, key, n, id)
	c.Int(back)
}

func (f *family) touchRow() *command.Command {
	return &command.Command{
		Name: "rl.touch", Arity: 4, Group: command.GroupLimiter, Since: sinceNamed,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Renews the lease of a named grant.",
		Complexity: "O(log N) in the grants that are open",
		Syntax:     "key id:string ms:integer",
		Run:        f.touch,
	}
}

func (f *family) touch(c *command.Ctx) {
	a := c.Cursor(2)
	id := a.Bytes()
	millis := a.IntRange(1, limiter.LeaseMicrosMax/1000, errLeaseRange)
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindLimiter)
	if !ok {
		return
	}
	n := budget.NamedOf(e)
	if n == nil || !n.Touch(id, c.Now, millis*1000) {
		c.Int(0)
		return
	}
	c.InnerDue(e)
	c.Changed(key, engine.EventLimiter, "rl.touch")
	budget.Effect(&c.View, key, n, id)
	c.Int(1)
}

func (f *family) releaseRow() *command.Command {
	return &command.Command{
		Name: "rl.release", Arity: -2, Group: command.GroupLimiter, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{withShared(command.Key(1, writeKey))},
		Summary:    "Gives tokens back to a limiter, never above its capacity.",
		Complexity: "O(1) for each rule; O(N) in the grants of a LOG that come back",
		Syntax:     "key [n:integer]",
		Run:        f.release,
	}
}

// release gives tokens back. A missing limiter has nothing in use, so nothing comes back.
func (f *family) release(c *command.Ctx) {
	a := c.Cursor(2)
	back := int64(1)
	if a.More() {
		back = a.IntRange(0, limiter.CountMax, errCost)
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	if c.GetWrite(key).Kind() == engine.KindHash {
		came, text := f.releaseShared(c, key, back)
		if text != "" {
			c.Error(text)
			return
		}
		c.Int(came)
		return
	}
	e, ok := c.LookupWrite(key, engine.KindLimiter)
	if !ok {
		return
	}
	n := budget.NamedOf(e)
	var freed [][]byte
	switch {
	case !e.Ok() || back == 0: // nothing changes, so nothing is logged
		back = 0
	case n == nil:
		if back, _ = limiter.Release(e.Bytes(nil), c.Now, back); back > 0 {
			c.NoteIdle(e)
		}
	default:
		if back, freed, _ = n.Release(c.Now, back); back > 0 || freed != nil {
			c.Bared(e)
		}
	}
	if back > 0 || freed != nil {
		c.Changed(key, engine.EventLimiter, "rl.release")
		budget.Effect(&c.View, key, n, freed...)
	}
	c.Int(back)
}
