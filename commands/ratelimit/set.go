package ratelimit

// RL.SET.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

func (f *family) setRow() *command.Command {
	return &command.Command{
		Name: "rl.set", Arity: -5, Group: command.GroupLimiter, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update|command.Insert)},
		Summary:    "Defines a limiter, or changes its rules and keeps what was consumed.",
		Complexity: "O(1) for each rule; O(N) in the grants of a LOG",
		Syntax:     "key [condition=(NX | XX)] [RESET] rule={algorithm=(GCRA | LOG | WINDOW | FIXED) count:integer period:integer [BURST burst:integer]}...",
		Run:        f.set,
	}
}

func (f *family) set(c *command.Ctx) {
	key := c.Args[1]
	a := c.Cursor(2)
	var nx, xx, reset bool
	for again := true; again; {
		switch {
		case !nx && !xx && a.Is("NX"):
			nx = true
		case !nx && !xx && a.Is("XX"):
			xx = true
		case !reset && a.Is("RESET"):
			reset = true
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
	var scratch [128]byte
	var p []byte
	if e.Ok() && !reset {
		p = limiter.Change(scratch[:0], e.Bytes(nil), rules, c.Now)
		limiter.Keep(p, true)
	} else {
		p = limiter.New(scratch[:0], rules, true)
	}
	c.PutBytes(engine.KindLimiter, key, p, e.Deadline())
	c.Changed(key, engine.EventLimiter, "rl.set")
	c.EffectImage(key)
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
