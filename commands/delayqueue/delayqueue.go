// Package delayqueue, internal to the server, is the family of delay queues: DQ.*, on delay queues and, for taking, on sorted
// sets by due time. engine/delayqueue implements the queue; this package handles arguments, replies, the waiting line, the
// dead-letter queue, and the keys of queues.
package delayqueue

import (
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// family is what the commands share.
type family struct {
	s *command.Server

	// serial is the last id that was made.
	mu     sync.Mutex
	serial delayqueue.Serial

	// fronts represent queues in the lines of their limiters.
	fronts fronts
	// lists are the limits of the lists that DQ.MOVE fills.
	lists *params.ListLimits
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s: s, lists: s.Config.List()}
	s.Keyspace.Forward = f.forward
	s.Keyspace.LineLeft = f.lineLeft
	s.Mutexes = append(s.Mutexes, &f.mu, &f.fronts.mu)
	s.Keyspace.Causes.Settled = settled
	s.OwnInfo = append(s.OwnInfo, f.info)
	return []*command.Command{
		f.addRow(), f.popRow(), f.mpopRow(), f.ackRow(), f.nackRow(), f.touchRow(), f.remRow(),
		f.setRow(), f.requeueRow(), f.moveRow(), peekRow, lenRow, infoRow, f.applyRow(),
	}
}

const since = "0.1.0"

const writeKey = command.RW | command.Access | command.Update

// Limits of what a client may ask for.
const (
	// delayMillisMax is the longest delay or lease, a hundred years.
	delayMillisMax = 3_155_760_000_000
	// timeMillisMin is the earliest due time, in 1973. A smaller number was meant as seconds: this one, as seconds, is in the
	// year 5138.
	timeMillisMin = 100_000_000_000
	// timeMillisMax is the last due time, in the year 9999.
	timeMillisMax = 253_402_300_799_999
	// blockMillisMax is the longest wait, as for BLPOP.
	blockMillisMax = 1<<53 - 1
	// batchMax is the most entries that one call takes or shows; larger counts are reduced to it. It bounds how long a call
	// holds the queue's lock.
	batchMax = 10_000
	// maxLenMax is the most that MAXLEN can be.
	maxLenMax = 1_000_000_000_000
	// concMax is the most that CONC can be.
	concMax = 1_000_000_000
	// triesMax is the most that TRIES can be.
	triesMax = 1_000_000_000
	// backoffMillisMax is the default of BACKOFF's MAX, a day.
	backoffMillisMax = 86_400_000
)

// Error texts. Those of numbers and syntax are Redis's own.
const (
	errBothTimes   = "ERR DELAY and AT exclude each other"
	errDelay       = "ERR delay is out of range, it can be 0 to 3155760000000 ms"
	errTime        = "ERR time is out of range, it can be 100000000000 to 253402300799999 ms"
	errSeconds     = "ERR AT takes Unix milliseconds, and this seems to be in seconds"
	errLease       = "ERR lease is out of range, it can be 0 to 3155760000000 ms"
	errID          = "ERR an id has 1 to 512 bytes and no #"
	errCount       = "ERR value is out of range, must be positive"
	errZSetLease   = "ERR a sorted set has no leases, LEASE is for delay queues"
	errUnit        = "ERR UNIT S is for sorted sets, delay queues count in milliseconds"
	errNumKeys     = "ERR numkeys should be greater than 0"
	errTries       = "ERR tries is out of range, it can be 0 to 1000000000"
	errBackoff     = "ERR backoff is out of range, it can be 0 to 3155760000000 ms and at most MAX"
	errNoDead      = "ERR the queue has no dead-letter queue, name one with DQ.SET key DEAD"
	errExpire      = "ERR EXPIRE is out of range, it can be 1 to 3155760000000 ms"
	errUnique      = "ERR UNIQUE is out of range, it can be 1 to 3155760000000 ms"
	errMaxWait     = "ERR MAXWAIT is out of range, it can be 1 to 3155760000000 ms"
	errGroup       = "ERR a group has 1 to 512 bytes"
	errPrio        = "ERR PRIO is out of range, it can be 0 to 255"
	errConc        = "ERR CONC is out of range, it can be 0 to 1000000000"
	errZSetGroup   = "ERR a sorted set has no groups, GROUP is for delay queues"
	errEvery       = "ERR EVERY is out of range, it can be 1 to 3155760000000 ms"
	errGroupRules  = "ERR CONC and TOTAL are no rules of groups, GROUPS CONC n bounds what is leased"
	errZone        = "ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin"
	errManyTimes   = "ERR DELAY, AT, EVERY and CRON exclude each other"
	errPlanOptions = "ERR UNIQUE and MAXWAIT are not for schedules"
	errMaxLen      = "ERR MAXLEN is out of range, it can be 0 to 1000000000000"
	errPaused      = "ERR PAUSED can be 0 or 1"
	errFull        = "QUEUEFULL the queue has as many entries as its MAXLEN allows"
	errReason      = "ERR a reason has at most 1024 bytes"
	errFrom        = "ERR FROM names an entry that is not there in that state"
	errSameQueue   = "ERR the two queues are the same key"
	errSameKey     = "ERR the sorted set and the list are the same key"
	errOwnDead     = "ERR a queue cannot be its own dead-letter queue"
	errNoLimit     = "NOLIMITER there is no such limiter, LIMIT takes one that RL.SET made"
	errLimitType   = "WRONGTYPE LIMIT names a key that is no limiter"
)

// lookup finds a queue for reading; nil is a missing one.
func lookup(c *command.Ctx, key []byte) (*delayqueue.Queue, bool) {
	return command.Object[*delayqueue.Queue](c, key, engine.KindDelayQueue)
}

// lookupWrite finds a queue that is going to be changed.
func lookupWrite(c *command.Ctx, key []byte) (*delayqueue.Queue, bool) {
	return command.ObjectWrite[*delayqueue.Queue](c, key, engine.KindDelayQueue)
}

// changed announces a change of a queue, and removes the queue if it is empty.
func changed(v *engine.View, key []byte, q *delayqueue.Queue, event string) {
	v.Changed(key, engine.EventDelayQueue, event)
	if q.Empty() {
		v.Delete(key)
		v.Changed(key, engine.EventGeneric, "del")
	}
}

// rearm tells the keyspace that a queue may have an earlier deadline than before.
func rearm(v *engine.View, key []byte, q *delayqueue.Queue) {
	if q.NextDue() == 0 {
		return
	}
	if e := v.Find(key); e.Ok() { // deadlines that have passed wait until the effects so far are logged
		v.InnerDue(e)
	}
}

func ceilMillis(micros int64) int64 { return (micros + 999) / 1000 }

// replyEntry appends an entry: the name to ack it by, payload, due, attempt.
func replyEntry(c *command.Ctx, e *delayqueue.Entry) {
	var name [64]byte
	c.Array(4)
	c.Bulk(e.AppendName(name[:0]))
	c.Bulk(e.Payload)
	c.Int(ceilMillis(e.DueMicros))
	c.Int(e.Attempt)
}
