package ratelimit

// RL.APPLY and RL.GRANTS, which clients cannot call. They apply logged effects of limiters (package budget) again.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

// applyRow sets a limiter's image and its key's deadline. RESTORE could do that too, but takes six words and a
// checksum.
var applyRow = &command.Command{
	Name: "rl.apply", Arity: 4, Group: command.GroupLimiter, Since: since,
	Flags:      command.Write | command.Applied,
	Keys:       []command.KeySpec{command.Key(1, writeKey)},
	Summary:    "Does again what a journal tells of a limiter.",
	Complexity: "O(1) for each rule; O(N) in the grants of a LOG",
	Syntax:     "key deadline-ms:integer image:string",
	Run: func(c *command.Ctx) {
		a := c.Cursor(2)
		deadline, image := a.Positive(errApply), a.Bytes()
		if limiter.CheckPlain(image) != nil {
			a.Fail(errApply)
		}
		if a.Failed(c) {
			return
		}
		c.PutBytes(engine.KindLimiter, c.Args[1], limiter.Compact(image), deadline)
		c.Changed(c.Args[1], engine.EventLimiter, "rl.apply")
		c.OK()
	},
}

// errApply is the error for arguments that no journal of this server contains.
const errApply = "ERR this is no effect of a limiter"

// ended logs that the keyspace ended n grants.
func ended(v *engine.View, key []byte, n int) {
	v.LogBefore([]byte("RL.GRANTS"), key, command.Number(v.Now), []byte(budget.WordEnded), command.Number(int64(n)))
}

func (f *family) grantsRow() *command.Command {
	return &command.Command{
		Name: "rl.grants", Arity: -5, Group: command.GroupLimiter, Since: sinceNamed,
		Flags:      command.Write | command.Applied,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Does again what a journal tells of a limiter's named grants.",
		Complexity: "O(log N) for each grant; O(N) where rules change",
		Syntax:     "key unix-us:integer word:string argument:string...",
		Run:        f.grants,
	}
}

func (f *family) grants(c *command.Ctx) {
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindLimiter)
	if !ok {
		return
	}
	n := budget.NamedOf(e)
	a := c.Cursor(2)
	now := a.IntRange(0, limiter.TimeMax, errApply)
	word := string(a.Bytes())
	switch {
	case a.Failed(c):
		return
	case word == budget.WordTaken:
		if !e.Ok() || !applyTaken(c, e, n, &a, now) {
			c.Error(errApply)
		}
		return
	case n == nil:
		c.Error(errApply)
		return
	case word == budget.WordEnded:
		most := a.Int()
		if a.Failed(c) {
			return
		}
		n.Ended(now, int(most))
	case word == budget.WordState:
		if !applyState(n, &a, now) {
			c.Error(errApply)
			return
		}
	default:
		c.Error(errApply)
		return
	}
	c.Changed(key, engine.EventLimiter, "rl.acquire")
	c.Bared(e)
	c.OK()
}

// applyTaken takes again what the journal says was granted.
func applyTaken(c *command.Ctx, e engine.Entry, n *limiter.Named, a *command.Args, now int64) bool {
	cost, times := a.IntRange(0, limiter.CountMax, errApply), a.IntRange(1, limiter.NamedMax, errApply)
	if a.Err() != "" || now < 0 {
		return false
	}
	p := e.Bytes(nil)
	size := len(p)
	p, ok := limiter.Again(p, now, cost, times)
	switch {
	case !ok:
		return false
	case n != nil:
		n.SetState(p)
		if !restore(n, a) {
			return false
		}
		c.InnerDue(e)
	case a.More():
		return false
	case len(p) != size:
		c.PutBytes(engine.KindLimiter, c.Args[1], p, e.Deadline())
	}
	c.Changed(c.Args[1], engine.EventLimiter, "rl.acquire")
	c.OK()
	return true
}

func applyState(n *limiter.Named, a *command.Args, now int64) bool {
	state, given := bytes.Clone(a.Bytes()), a.Bytes()
	if a.Err() != "" || limiter.Check(state) != nil {
		return false
	}
	var buf [limiter.RulesMax]limiter.Rule
	if rules := limiter.Rules(buf[:0], state); !limiter.HasRules(n.State(), rules) {
		n.Rebase(rules, now)
	}
	n.SetState(state)
	if n.SetGiven(given) != nil {
		return false
	}
	return restore(n, a)
}

// restore restores the saved grants that the arguments name.
func restore(n *limiter.Named, a *command.Args) bool {
	for a.More() {
		id, saved := a.Bytes(), a.Bytes()
		if a.Err() != "" || n.Restore(id, saved) != nil {
			return false
		}
	}
	return n.CheckHeld() == nil
}
