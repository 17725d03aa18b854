package generic

// Times to live.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

func expireRowOf(name, since, syntax, summary string, seconds, absolute bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -3, Group: command.GroupGeneric, Since: since,
		Flags:      command.Write | command.Fast,
		ACL:        keyspaceACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
		Summary:    summary,
		Complexity: "O(1)",
		Syntax:     syntax + " [condition=(NX | XX | GT | LT)]",
		History:    [][2]string{{"7.0.0", "NX, XX, GT and LT."}},
		Run:        func(c *command.Ctx) { expire(c, seconds, absolute) },
	}
}

var (
	expireRow = expireRowOf("expire", "1.0.0", "key seconds:integer",
		"Lets a key live for some seconds.", true, false)
	pexpireRow = expireRowOf("pexpire", "2.6.0", "key milliseconds:integer",
		"Lets a key live for some milliseconds.", false, false)
	expireatRow = expireRowOf("expireat", "1.2.0", "key unix-time-seconds:unix-time",
		"Lets a key live until a time in seconds.", true, true)
	pexpireatRow = expireRowOf("pexpireat", "2.6.0", "key unix-time-milliseconds:unix-time",
		"Lets a key live until a time in milliseconds.", false, true)
)

func expire(c *command.Ctx, seconds, absolute bool) {
	a := c.Cursor(3)
	var nx, xx, gt, lt bool
	for a.More() {
		switch {
		case a.Is("NX"):
			nx = true
		case a.Is("XX"):
			xx = true
		case a.Is("GT"):
			gt = true
		case a.Is("LT"):
			lt = true
		default:
			a.Fail("ERR Unsupported option " + string(a.Peek()))
		}
	}
	if nx && (xx || gt || lt) {
		a.Fail("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if gt && lt {
		a.Fail("ERR GT and LT options at the same time are not compatible")
	}
	if a.Failed(c) {
		return
	}
	at, ok := expiryTime(c, c.Args[2], seconds, absolute)
	if !ok {
		return
	}
	key := c.Args[1]
	e := c.GetWrite(key)
	if !e.Ok() {
		c.Int(0)
		return
	}
	now := e.Deadline() // 0: none, which counts as infinitely far
	if nx && now != 0 || xx && now == 0 || gt && (now == 0 || at <= now) || lt && now != 0 && at >= now {
		c.Int(0)
		return
	}
	if c.Past(at) {
		c.Delete(key)
		c.Changed(key, engine.EventGeneric, "del")
		c.EffectGone(key)
	} else {
		c.SetDeadline(e, at)
		c.Changed(key, engine.EventGeneric, "expire")
		if c.Logging() && (seconds || !absolute) {
			c.Effect(append([][]byte{[]byte("PEXPIREAT"), key, command.Number(at)}, c.Args[3:]...)...)
		}
	}
	c.Int(1)
}

// expiryTime reads a time to live, or a time, as Unix milliseconds. It may be
// in the past.
func expiryTime(c *command.Ctx, arg []byte, seconds, absolute bool) (at int64, ok bool) {
	a := command.ArgsOf(arg)
	at = a.Int()
	if a.Failed(c) {
		return 0, false
	}
	base := int64(0)
	if !absolute {
		base = c.Now / 1000
	}
	if seconds && (at > math.MaxInt64/1000 || at < math.MinInt64/1000) {
		c.Error(command.ErrInvalidExpire(c.Cmd.FullName()))
		return 0, false
	}
	if seconds {
		at *= 1000
	}
	if at > math.MaxInt64-base {
		c.Error(command.ErrInvalidExpire(c.Cmd.FullName()))
		return 0, false
	}
	return at + base, true
}

var persistRow = &command.Command{
	Name: "persist", Arity: 2, Group: command.GroupGeneric, Since: "2.2.0",
	Flags:      command.Write | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
	Summary:    "Lets a key live for ever.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		key := c.Args[1]
		e := c.GetWrite(key)
		if e.Deadline() == 0 {
			c.Int(0)
			return
		}
		c.SetDeadline(e, 0)
		c.Changed(key, engine.EventGeneric, "persist")
		c.Int(1)
	},
}

func ttlRowOf(name, since, summary string, tips []string, reply func(at, now int64) int64) *command.Command {
	return &command.Command{
		Name: name, Arity: 2, Group: command.GroupGeneric, Since: since,
		Flags:      command.ReadOnly | command.Fast,
		ACL:        keyspaceACL,
		Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
		Summary:    summary,
		Complexity: "O(1)",
		Tips:       tips,
		Syntax:     "key",
		Run: func(c *command.Ctx) {
			noTouch := c.NoTouch
			c.NoTouch = true
			e := c.Get(c.Args[1])
			c.NoTouch = noTouch
			switch at := e.Deadline(); {
			case !e.Ok():
				c.Int(-2)
			case at == 0:
				c.Int(-1)
			default:
				c.Int(reply(at, c.Now/1000))
			}
		},
	}
}

var varies = []string{"nondeterministic_output"}

var (
	ttlRow = ttlRowOf("ttl", "1.0.0", "Returns for how many seconds a key will live.", varies,
		func(at, now int64) int64 { return roundSeconds(max(at-now, 0)) })
	pttlRow = ttlRowOf("pttl", "2.6.0", "Returns for how many milliseconds a key will live.", varies,
		func(at, now int64) int64 { return max(at-now, 0) })
	expiretimeRow = ttlRowOf("expiretime", "7.0.0", "Returns until when a key will live, in seconds.", nil,
		func(at, now int64) int64 { return roundSeconds(at) })
	pexpiretimeRow = ttlRowOf("pexpiretime", "7.0.0", "Returns until when a key will live, in milliseconds.", nil,
		func(at, now int64) int64 { return at })
)

// roundSeconds rounds milliseconds to the nearest second. The largest times overflow, as in Redis.
func roundSeconds(millis int64) int64 { return millis/1000 + (millis%1000+500)/1000 }
