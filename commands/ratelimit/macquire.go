package ratelimit

// RL.MACQUIRE: several limiters, all or nothing.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

func (f *family) macquireRow() *command.Command {
	keys := command.NumKeys(1, writeKey)
	keys.Step = 2
	return &command.Command{
		Name: "rl.macquire", Arity: -4, Group: command.GroupLimiter, Since: since,
		Flags:      fastWrite,
		ACL:        acl,
		Keys:       []command.KeySpec{keys},
		Summary:    "Takes costs from several limiters, from all of them or from none.",
		Complexity: "O(N) in the number of limiters",
		Syntax:     "numkeys:integer data={key cost:integer}... [PEEK]",
		Run:        f.macquire,
	}
}

// keyCost is one limiter of RL.MACQUIRE. A key that is named twice has its
// costs added up.
type keyCost struct {
	key   []byte
	index int // of its first mention
	cost  int64
	limiter.Decision
}

const errNumKeys = "ERR numkeys should be greater than 0"

func readKeyCosts(a *command.Args) (list []keyCost, peek bool) {
	n := a.IntOr(errNumKeys)
	if a.Err() == "" && n <= 0 {
		a.Fail(errNumKeys)
	}
	if n > int64(a.Left()/2) {
		a.Syntax()
	}
	list = make([]keyCost, 0, max(0, min(n, int64(a.Left()/2))))
	for i := 0; a.Err() == "" && i < int(n); i++ {
		key, cost := a.Bytes(), a.Int()
		if a.Err() == "" && (cost < 0 || cost > limiter.CountMax) {
			a.Fail(errCost)
		}
		known := false
		for j := range list {
			if bytes.Equal(list[j].key, key) {
				list[j].cost += cost
				known = true
			}
		}
		if !known {
			list = append(list, keyCost{key: key, index: i, cost: cost})
		}
	}
	peek = a.Is("PEEK")
	if a.More() {
		a.Syntax()
	}
	return list, peek
}

func (f *family) macquire(c *command.Ctx) {
	a := c.Cursor(1)
	list, peek := readKeyCosts(&a)
	if a.Failed(c) {
		return
	}
	limited := false
	for i := range list {
		k := &list[i]
		if k.cost > limiter.CountMax {
			c.Error(errCapacity)
			return
		}
		q := call{cost: k.cost, mode: limiter.Peek}
		var text string
		if k.Decision, text = f.decide(c, k.key, c.GetLimiter(k.key), &q); text != "" {
			c.Error(text)
			return
		}
		limited = limited || k.Limited
	}
	if !peek {
		f.settle(c, list, limited)
	}
	f.replyDeciding(c, list, limited)
}

// settle takes all costs, or counts the refusal where it came from.
func (f *family) settle(c *command.Ctx, list []keyCost, limited bool) {
	for i := range list {
		k := &list[i]
		if !limited {
			q := call{cost: k.cost, mode: limiter.Try}
			k.Decision, _ = f.decide(c, k.key, c.GetLimiter(k.key), &q) // it was seen to fit
			continue
		}
		if k.Limited {
			limiter.CountRefused(c.GetLimiter(k.key).Bytes(nil))
			f.count(c, true)
		}
	}
}

// replyDeciding replies the decision of the limiter that has to be waited for
// longest or, if all is granted, of the one with the least left; then where
// that is among the arguments, -1 if all is granted.
func (f *family) replyDeciding(c *command.Ctx, list []keyCost, limited bool) {
	best := &list[0]
	for i := range list[1:] {
		k := &list[i+1]
		switch {
		case limited && k.RetryAfterMicros > best.RetryAfterMicros,
			!limited && k.Remaining < best.Remaining:
			best = k
		}
	}
	index := int64(-1)
	if limited {
		index = int64(best.index)
	}
	c.Array(6)
	replyDecision(c, best.Decision)
	c.Int(index)
}

func (f *family) releaseRow() *command.Command {
	return &command.Command{
		Name: "rl.release", Arity: -2, Group: command.GroupLimiter, Since: since,
		Flags:      command.Write | command.Fast,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Gives tokens back to a limiter, never above its capacity.",
		Complexity: "O(1) for each rule; O(N) in the grants of a LOG that come back",
		Syntax:     "key [n:integer]",
		Run:        f.release,
	}
}

// release gives back. What is not there has nothing in use, so nothing comes
// back.
func (f *family) release(c *command.Ctx) {
	a := c.Cursor(2)
	n := int64(1)
	if a.More() {
		n = a.IntRange(0, limiter.CountMax, errCost)
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	e, ok := c.LookupWrite(c.Args[1], engine.KindLimiter)
	if !ok {
		return
	}
	if !e.Ok() {
		c.Int(0)
		return
	}
	back, _ := limiter.Release(e.Bytes(nil), c.Now, n)
	if back > 0 {
		c.NoteIdle(e)
		c.Changed(c.Args[1], engine.EventLimiter, "rl.release")
		c.EffectImage(c.Args[1])
	}
	c.Int(back)
}
