package ratelimit

// RL.THROTTLE, which is redis-cell's CL.THROTTLE, and GCRA, which is Redis's form of it. Each call gives the rule,
// counts in seconds, and refuses a cost that can never be granted instead of returning an error.

import (
	"math"

	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) throttleRow(name string) *command.Command {
	return &command.Command{
		Name: name, Arity: -5, Group: command.GroupLimiter, Since: since,
		Flags:      fastWrite,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Insert)},
		Summary:    "Takes a quantity from a token bucket, as redis-cell's CL.THROTTLE.",
		Complexity: "O(1)",
		Syntax:     "key max_burst:integer count:integer period:integer [quantity:integer]",
		Run:        f.throttle,
	}
}

func (f *family) throttle(c *command.Ctx) {
	a := c.Cursor(2)
	maxBurst, count, seconds := a.Int(), a.Int(), a.Int()
	quantity := int64(1)
	if a.More() {
		quantity = a.Int()
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	period := int64(0) // out of range
	if seconds > 0 && seconds <= limiter.PeriodMicrosMax/1_000_000 {
		period = seconds * 1_000_000
	}
	f.cell(c, maxBurst, count, period, quantity)
}

func (f *family) gcraRow() *command.Command {
	return &command.Command{
		Name: "gcra", Arity: -5, Group: command.GroupLimiter, Since: since,
		Flags:      fastWrite,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Insert)},
		Summary:    "Takes tokens from a token bucket, with a period in seconds or parts of one.",
		Complexity: "O(1)",
		Syntax:     "key max-burst:integer tokens-per-period:integer period:double [cost=(TOKENS count:integer | NUM_REQUESTS count:integer)]",
		Run:        f.gcra,
	}
}

func (f *family) gcra(c *command.Ctx) {
	a := c.Cursor(2)
	maxBurst, count, seconds := a.Int(), a.Int(), a.Float()
	tokens := int64(1)
	if a.Is("TOKENS") || a.Is("NUM_REQUESTS") {
		tokens = a.Int()
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	period := int64(0)
	if micros := math.Round(seconds * 1e6); micros > 0 && micros <= float64(limiter.PeriodMicrosMax) {
		period = int64(micros)
	}
	f.cell(c, maxBurst, count, period, tokens)
}

// cell decides and replies as redis-cell does, with times in seconds, rounded up.
func (f *family) cell(c *command.Ctx, maxBurst, count, periodMicros, quantity int64) {
	r, err := limiter.CellRule(maxBurst, count, periodMicros)
	if err != nil {
		c.Error(textOf(err))
		return
	}
	rules := [...]limiter.Rule{r}
	q := call{cost: quantity, rules: rules[:], cell: true}
	d, text := f.decide(c, c.Args[1], c.GetLimiter(c.Args[1]), &q)
	if text != "" {
		c.Error(text)
		return
	}
	c.Array(5)
	replyDecision(c.Writer, d, limiter.CeilSeconds)
}
