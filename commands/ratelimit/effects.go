package ratelimit

// The effect of a limiter: what it became. Journals have it as RL.APPLY, which clients cannot call: the image of the
// limiter as it is, with its key's deadline. RESTORE would do, with six words and a checksum.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

var applyRow = &command.Command{
	Name: "rl.apply", Arity: 4, Group: command.GroupLimiter, Since: since,
	Flags:      command.Write | command.Applied,
	ACL:        acl,
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

// errApply is for what no journal of ours has.
const errApply = "ERR this is no effect of a limiter"
