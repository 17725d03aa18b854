// Package ratelimit, internal to the server, is the family of limiters: RL.*, and commands of Redis and redis-cell
// with the same purpose. engine/limiter does the arithmetic; this package handles arguments, replies, the waiting
// line, and the keys of limiters.
package ratelimit

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// family is what the commands share.
type family struct {
	s       *command.Server
	zsets   *params.ZSetLimits
	settled atomic.Int64 // grants
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s: s, zsets: s.Config.ZSet()}
	s.Keyspace.Causes.Ended = ended
	s.OwnInfo = append(s.OwnInfo, f.info)
	return []*command.Command{
		f.setRow(), f.acquireRow(), f.macquireRow(), f.settleRow(), f.touchRow(), f.releaseRow(), infoRow, f.grantsRow(),
		f.throttleRow("rl.throttle"), f.throttleRow("cl.throttle"), f.gcraRow(),
		increxRow, applyRow,
	}
}

const (
	since      = "0.1.0"
	sinceNamed = "0.2.0" // named grants
)

var (
	writeKey  = command.RW | command.Access | command.Update
	fastWrite = command.Write | command.DenyOOM | command.Fast
)

// withShared is the spec of keys that may be Redisson limiters.
func withShared(keys command.KeySpec) command.KeySpec {
	keys.Flags |= command.Incomplete
	keys.Notes = "A Redisson limiter has two more keys, {key}:value and {key}:permits."
	return keys
}

// Error texts. Those of numbers and syntax are Redis's own.
const (
	errNoLimiter  = "NOLIMITER no such limiter, define it with RL.SET or give a rule"
	errCapacity   = "ERR cost is above the limiter's capacity"
	errCost       = "ERR cost is out of range, it can be 0 to 1000000000000"
	errLease      = "ERR CONC needs ID and LEASE, so that what is held comes back"
	errLeaseRange = "ERR lease is out of range, it can be 1 to 315576000000 ms"
	errName       = "ERR the ID is empty or too long, it can have at most 512 bytes"
	errNamed      = "ERR too many open grants"
)

// texts are the error texts for the kernel's errors, except for syntax errors.
var texts = map[error]string{
	limiter.ErrCapacity: errCapacity,
	limiter.ErrCost:     errCost,
	limiter.ErrDebt:     "ERR the limiter cannot take that much debt",
	limiter.ErrCount:    "ERR count is out of range, it can be 1 to 1000000000000",
	limiter.ErrPeriod:   "ERR period is out of range, it can be 1 to 315576000000 ms",
	limiter.ErrBurst:    "ERR burst is out of range, it can be 1 to 1000000000000",
	limiter.ErrFill:     "ERR a full burst would take more than 36000 years to come back",
	limiter.ErrRules:    "ERR too many rules, a limiter has at most 8",
	limiter.ErrLease:    errLease,
	limiter.ErrName:     errName,
	limiter.ErrNamed:    errNamed,
	limiter.ErrUnit:     "ERR the period of CAL is HOUR, DAY, WEEK or MONTH",
	limiter.ErrFrom:     "ERR FROM is out of range, it can be 0 to 59 for HOUR, 0 to 23 for DAY, 1 to 7 for WEEK and 1 to 28 for MONTH",
	limiter.ErrZone:     "ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin",
	limiter.ErrNumber:   command.ErrNotInt,
}

// textOf is the error text for an error of the kernel.
func textOf(err error) string {
	if text, ok := texts[err]; ok {
		return text
	}
	return command.ErrSyntax
}

// count counts a call.
func (f *family) count(c *command.Ctx, key []byte, limited bool) {
	f.s.Prefixes.Limiter(key, c.Session.ID, !limited)
}

// info writes the limiters' part of INFO's section limitkv.
func (f *family) info(w *command.InfoWriter) {
	granted, refused := f.s.Prefixes.All.Limiters.Sum()
	w.Line("limiters", w.Tally().Kinds[engine.KindLimiter])
	w.Line("limiter_calls_granted", granted)
	w.Line("limiter_calls_refused", refused)
	w.Line("limiter_grants_open", w.Tally().Parts.Grants)
	w.Line("limiter_grants_settled", f.settled.Load())
	w.Line("limiter_grants_ended", w.Tally().Stats.EndedGrants)
	w.Line("limiter_waiters", w.Tally().Waiters[engine.KindLimiter])
}

// replyDecision appends the five integers of a decision. round converts microseconds to the reply's unit.
func replyDecision(w command.Replier, d limiter.Decision, round func(micros int64) int64) {
	limited := int64(0)
	if d.Limited {
		limited = 1
	}
	w.Int(limited)
	w.Int(d.Limit)
	w.Int(d.Remaining)
	w.Int(round(d.RetryAfterMicros))
	w.Int(round(d.ResetAfterMicros))
}
