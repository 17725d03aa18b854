package ratelimit

// RL.INFO.

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

var infoRow = &command.Command{
	Name: "rl.info", Arity: 2, Group: command.GroupLimiter, Since: since,
	Flags:      command.ReadOnly | command.Fast,
	ACL:        acl,
	Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
	Summary:    "Shows a limiter's rules, what is available, who waits, and HTTP header texts.",
	Complexity: "O(1) for each rule",
	Syntax:     "key",
	Run:        info,
}

// never is longer than any wait.
const never = math.MaxInt64

func info(c *command.Ctx) {
	key := c.Args[1]
	e, ok := c.Lookup(key, engine.KindLimiter)
	if !ok {
		return
	}
	if !e.Ok() {
		c.Error(errNoLimiter)
		return
	}
	p := e.Bytes(nil)
	var buf [limiter.RulesMax]limiter.RuleStatus
	n := budget.NamedOf(e)
	rules := limiter.Status(buf[:0], p, c.Now, n)
	least, reset, grants := rules[0].Available, int64(0), 0
	for _, r := range rules {
		least = min(least, r.Available)
		if reset = max(reset, r.ResetAfterMicros); r.ResetAfterMicros < 0 {
			reset = never
		}
	}
	if reset == never {
		reset = -1 // nothing tells
	}
	if n != nil {
		grants = n.Len()
	}
	shadow, shadowed := limiter.Shadow(p)
	waiters, _ := c.Waiting(key, engine.KindLimiter)
	granted, refused := limiter.Totals(p)

	pairs := 10
	if shadow {
		pairs++
	}
	c.Map(pairs)
	c.BulkString("rules")
	c.Array(len(rules))
	var text []byte
	for _, r := range rules {
		text = r.Rule.AppendText(text[:0])
		c.Bulk(text)
	}
	c.BulkString("capacity")
	c.Int(limiter.Capacity(p))
	c.BulkString("available")
	c.Int(least)
	c.BulkString("reset_after")
	c.Int(limiter.CeilMillis(reset))
	c.BulkString("waiters")
	c.Int(int64(waiters))
	c.BulkString("granted")
	c.Int(granted)
	c.BulkString("refused")
	c.Int(refused)
	c.BulkString("grants")
	c.Int(int64(grants))
	if shadow {
		c.BulkString("shadow_refused")
		c.Int(shadowed)
	}
	c.BulkString("RateLimit")
	c.Bulk(appendHeader(text[:0], rules, appendState))
	c.BulkString("RateLimit-Policy")
	c.Bulk(appendHeader(text[:0], rules, appendPolicy))
}

// appendHeader writes one item for each rule, as the IETF draft "RateLimit
// header fields for HTTP" has them (from its version 8 on): a name in quotes
// and parameters.
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

// appendState: what remains, and in how many seconds all is back.
func appendState(dst []byte, r limiter.RuleStatus) []byte {
	dst = append(dst, ";r="...)
	dst = strconv.AppendInt(dst, max(r.Available, 0), 10)
	if r.ResetAfterMicros < 0 {
		return dst // nothing tells when
	}
	dst = append(dst, ";t="...)
	return strconv.AppendInt(dst, limiter.CeilSeconds(r.ResetAfterMicros), 10)
}

// appendPolicy: the quota, and its window in seconds.
func appendPolicy(dst []byte, r limiter.RuleStatus) []byte {
	dst = append(dst, ";q="...)
	dst = strconv.AppendInt(dst, r.Rule.Count, 10)
	if r.PeriodMicros == 0 {
		return dst // it has no window
	}
	dst = append(dst, ";w="...)
	return strconv.AppendInt(dst, limiter.CeilSeconds(r.PeriodMicros), 10)
}
