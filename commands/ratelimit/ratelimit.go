// Package ratelimit is the family of limiters: RL.*, and the commands of others
// that mean the same. The arithmetic is engine/limiter's; here are arguments,
// replies, the waiting line, and the keys that limiters live under.
package ratelimit

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/params"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

// family is what the commands share.
type family struct {
	zsets  *params.ZSetLimits
	totals [stripes]tally
}

// stripes keep the counters of sessions on different cores apart.
const stripes = 16

type tally struct {
	granted, refused atomic.Int64
	_                [48]byte
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{zsets: s.Config.ZSet()}
	s.OwnInfo = append(s.OwnInfo, f.info)
	return []*command.Command{
		f.setRow(), f.acquireRow(), f.macquireRow(), f.releaseRow(), infoRow,
		f.throttleRow("rl.throttle"), f.throttleRow("cl.throttle"), f.gcraRow(),
		increxRow,
	}
}

const since = "0.1.0"

var (
	acl       = []string{"ratelimit"}
	writeKey  = command.RW | command.Access | command.Update
	fastWrite = command.Write | command.DenyOOM | command.Fast
)

// Error texts. Those of numbers and syntax are Redis's own.
const (
	errNoLimiter = "NOLIMITER no such limiter, define it with RL.SET or give a rule"
	errCapacity  = "ERR cost is above the limiter's capacity"
	errCost      = "ERR cost is out of range, it can be 0 to 1000000000000"
	errDebt      = "ERR the limiter cannot take that much debt"
	errCount     = "ERR count is out of range, it can be 1 to 1000000000000"
	errPeriod    = "ERR period is out of range, it can be 1 to 315576000000 ms"
	errBurst     = "ERR burst is out of range, it can be 1 to 1000000000000"
	errFill      = "ERR a full burst would take more than 36000 years to come back"
	errRules     = "ERR too many rules, a limiter has at most 8"
)

// textOf is the error text for an error of the kernel.
func textOf(err error) string {
	switch err {
	case limiter.ErrCapacity:
		return errCapacity
	case limiter.ErrCost:
		return errCost
	case limiter.ErrDebt:
		return errDebt
	case limiter.ErrCount:
		return errCount
	case limiter.ErrPeriod:
		return errPeriod
	case limiter.ErrBurst:
		return errBurst
	case limiter.ErrFill:
		return errFill
	case limiter.ErrRules:
		return errRules
	case limiter.ErrNumber:
		return command.ErrNotInt
	}
	return command.ErrSyntax
}

// count adds a call to the totals of INFO.
func (f *family) count(c *command.Ctx, limited bool) {
	t := &f.totals[c.Session.ID%stripes]
	if limited {
		t.refused.Add(1)
	} else {
		t.granted.Add(1)
	}
}

// info writes the limiters' part of INFO's section limitkv.
func (f *family) info(w *command.InfoWriter) {
	var granted, refused int64
	for i := range f.totals {
		granted += f.totals[i].granted.Load()
		refused += f.totals[i].refused.Load()
	}
	w.Line("limiters", w.Tally().Kinds[engine.KindLimiter])
	w.Line("limiter_calls_granted", granted)
	w.Line("limiter_calls_refused", refused)
	w.Line("limiter_waiters", w.Tally().Waiters[engine.KindLimiter])
}

// replyDecision appends the five integers, times in milliseconds.
func replyDecision(w interface {
	Int(int64)
}, d limiter.Decision) {
	limited := int64(0)
	if d.Limited {
		limited = 1
	}
	w.Int(limited)
	w.Int(d.Limit)
	w.Int(d.Remaining)
	w.Int(limiter.CeilMillis(d.RetryAfterMicros))
	w.Int(limiter.CeilMillis(d.ResetAfterMicros))
}
