package ratelimit

// RL.SET.

import (
	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) setRow() *command.Command {
	return &command.Command{
		Name: "rl.set", Arity: -4, Group: command.GroupLimiter, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update|command.Insert)},
		Summary:    "Defines a limiter, or changes its rules and keeps what was consumed.",
		Complexity: "O(1) for each rule; O(N) in the grants of a LOG",
		Syntax:     "key [condition=(NX | XX)] [RESET] [SHADOW] rule=" + limiter.Syntax(),
		Run:        f.set,
	}
}

func (f *family) set(c *command.Ctx) {
	key := c.Args[1]
	a := c.Cursor(2)
	var nx, xx, reset, shadow bool
	for again := true; again; {
		switch {
		case !nx && !xx && a.Is("NX"):
			nx = true
		case !nx && !xx && a.Is("XX"):
			xx = true
		case !reset && a.Is("RESET"):
			reset = true
		case !shadow && a.Is("SHADOW"):
			shadow = true
		default:
			again = false
		}
	}
	var buf [limiter.RulesMax]limiter.Rule
	rules, text := readRules(buf[:0], &a)
	if text == "" && len(rules) == 0 {
		text = command.ErrSyntax
	}
	if text != "" {
		c.Error(text)
		return
	}
	e, ok := c.LookupWrite(key, engine.KindLimiter)
	if !ok {
		return
	}
	if nx && e.Ok() || xx && !e.Ok() {
		c.Null()
		return
	}
	var p []byte
	n := budget.NamedOf(e)
	switch {
	case !e.Ok() || reset:
		p, n = limiter.New(nil, rules, true), nil
	case n != nil:
		p = n.StateFor(rules, c.Now)
		n.Rebase(rules, c.Now)
	default:
		p = limiter.Change(nil, e.Bytes(nil), rules, c.Now)
	}
	limiter.Keep(p, true)
	if p = limiter.SetShadow(p, shadow); n == nil {
		c.PutBytes(engine.KindLimiter, key, p, e.Deadline())
	} else {
		n.SetState(p)
	}
	c.Changed(key, engine.EventLimiter, "rl.set")
	budget.Effect(&c.View, key, n)
	c.OK()
}

// readRules reads rules up to the end of the arguments.
func readRules(dst []limiter.Rule, a *command.Args) ([]limiter.Rule, string) {
	if a.Err() != "" {
		return dst, a.Err()
	}
	rules, err := limiter.ParseRules(dst, a.Rest())
	if err != nil {
		return rules, textOf(err)
	}
	return rules, ""
}
