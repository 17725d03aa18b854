package ratelimit

// RL.INFO.

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

var infoRow = &command.Command{
	Name: "rl.info", Arity: 2, Group: command.GroupLimiter, Since: since,
	Flags:      command.ReadOnly | command.Fast,
	Keys:       []command.KeySpec{withShared(command.Key(1, command.RO|command.Access))},
	Summary:    "Shows a limiter's rules, what is available, who waits, and HTTP header texts.",
	Complexity: "O(1) for each rule",
	Syntax:     "key",
	Run:        info,
}

// never is longer than any wait.
const never = math.MaxInt64

func info(c *command.Ctx) {
	key := c.Args[1]
	e := c.Get(key)
	switch {
	case !e.Ok():
		c.Error(errNoLimiter)
		return
	case e.Kind() == engine.KindHash:
		infoShared(c, key)
		return
	case e.Kind() != engine.KindLimiter:
		c.WrongType()
		return
	}
	p := e.Bytes(nil)
	var buf [limiter.RulesMax]limiter.RuleStatus
	n := budget.NamedOf(e)
	i := infoOf{rules: limiter.Status(buf[:0], p, c.Now, n), capacity: limiter.Capacity(p)}
	if n != nil {
		i.grants = n.Len()
	}
	i.shadow, i.shadowed = limiter.Shadow(p)
	i.granted, i.refused = limiter.Totals(p)
	replyInfo(c, i)
}

// infoOf is what RL.INFO shows of a limiter.
type infoOf struct {
	rules            []limiter.RuleStatus
	capacity         int64
	shared           bool // a Redisson limiter, which has no totals and no named grants
	granted, refused int64
	grants           int
	shadow           bool
	shadowed         int64 // calls that would have been refused
}

func replyInfo(c *command.Ctx, i infoOf) {
	least, reset := i.rules[0].Available, int64(0)
	for _, r := range i.rules {
		least = min(least, r.Available)
		if reset = max(reset, r.ResetAfterMicros); r.ResetAfterMicros < 0 {
			reset = never
		}
	}
	if reset == never {
		reset = -1 // unknown
	}
	waiters, _ := c.Waiting(c.Args[1], engine.KindLimiter)

	pairs := 7
	if !i.shared {
		pairs += 3
	}
	if i.shadow {
		pairs++
	}
	c.Map(pairs)
	c.BulkString("rules")
	c.Array(len(i.rules))
	var text []byte
	for _, r := range i.rules {
		text = r.Rule.AppendText(text[:0])
		c.Bulk(text)
	}
	pair := func(name string, n int64) {
		c.BulkString(name)
		c.Int(n)
	}
	pair("capacity", i.capacity)
	pair("available", least)
	pair("reset_after", limiter.CeilMillis(reset))
	pair("waiters", int64(waiters))
	if !i.shared {
		pair("granted", i.granted)
		pair("refused", i.refused)
		pair("grants", int64(i.grants))
	}
	if i.shadow {
		pair("shadow_refused", i.shadowed)
	}
	c.BulkString("RateLimit")
	c.Bulk(appendHeader(text[:0], i.rules, appendState))
	c.BulkString("RateLimit-Policy")
	c.Bulk(appendHeader(text[:0], i.rules, appendPolicy))
}

// appendHeader writes one item for each rule, in the form of the IETF draft "RateLimit header fields for HTTP"
// (version 8 and later): a name in quotes, then parameters.
func appendHeader(dst []byte, rules []limiter.RuleStatus, item func([]byte, limiter.RuleStatus) []byte) []byte {
	for i, r := range rules {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, '"')
		for _, ch := range []byte(r.Rule.Algorithm.String()) {
			dst = append(dst, ch|0x20)
		}
		if len(rules) > 1 { // names are unique within a field
			dst = strconv.AppendInt(append(dst, '-'), int64(i+1), 10)
		}
		dst = item(append(dst, '"'), r)
	}
	return dst
}

// appendState appends what remains, and in how many seconds everything is available again.
func appendState(dst []byte, r limiter.RuleStatus) []byte {
	dst = append(dst, ";r="...)
	dst = strconv.AppendInt(dst, max(r.Available, 0), 10)
	if r.ResetAfterMicros < 0 {
		return dst // the time is unknown
	}
	dst = append(dst, ";t="...)
	return strconv.AppendInt(dst, limiter.CeilSeconds(r.ResetAfterMicros), 10)
}

// appendPolicy appends the quota, and its window in seconds.
func appendPolicy(dst []byte, r limiter.RuleStatus) []byte {
	dst = append(dst, ";q="...)
	dst = strconv.AppendInt(dst, r.Rule.Count, 10)
	if r.PeriodMicros == 0 {
		return dst // the rule has no window
	}
	dst = append(dst, ";w="...)
	return strconv.AppendInt(dst, limiter.CeilSeconds(r.PeriodMicros), 10)
}
