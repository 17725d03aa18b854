// Package delayqueue is the family of delay queues: DQ.*, on the type of that
// name and, for taking, on sorted sets by due time. The queue itself is
// engine/delayqueue's; here are arguments, replies, the waiting line, the
// dead-letter queue, and the keys that queues live under.
package delayqueue

import (
	"sync"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
)

// family is what the commands share.
type family struct {
	s *command.Server

	// serial is the last id that was made.
	mu     sync.Mutex
	serial delayqueue.Serial

	late lateness
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s: s}
	s.Keyspace.Forward = f.forward
	s.Mutexes = append(s.Mutexes, &f.mu)
	s.Keyspace.Causes.Settled = settled
	s.OwnInfo = append(s.OwnInfo, f.info)
	return []*command.Command{
		f.addRow(), f.popRow(), f.mpopRow(), f.ackRow(), f.nackRow(), f.touchRow(), f.remRow(),
		f.setRow(), peekRow, lenRow, infoRow, f.applyRow(),
	}
}

const since = "0.1.0"

var (
	acl      = []string{"delayqueue"}
	writeKey = command.RW | command.Access | command.Update
)

// Limits of what a client may ask for.
const (
	// delayMillisMax is the longest delay or lease, a hundred years.
	delayMillisMax = 3_155_760_000_000
	// timeMillisMax is the last due time, in the year 9999.
	timeMillisMax = 253_402_300_799_999
	// blockMillisMax is the longest wait, as for BLPOP.
	blockMillisMax = 1<<53 - 1
	// batchMax is the most entries that one call takes or shows: larger counts
	// mean this. It bounds how long a call holds the queue's lock.
	batchMax = 10_000
	// triesMax is the most that TRIES can be.
	triesMax = 1_000_000_000
	// backoffMillisMax is BACKOFF's MAX where none is given, a day.
	backoffMillisMax = 86_400_000
)

// Error texts. Those of numbers and syntax are Redis's own.
const (
	errBothTimes = "ERR DELAY and AT exclude each other"
	errDelay     = "ERR delay is out of range, it can be 0 to 3155760000000 ms"
	errTime      = "ERR time is out of range, it can be 0 to 253402300799999 ms"
	errLease     = "ERR lease is out of range, it can be 0 to 3155760000000 ms"
	errID        = "ERR an id has 1 to 512 bytes and no #"
	errCount     = "ERR value is out of range, must be positive"
	errZSetLease = "ERR a sorted set has no leases, LEASE is for delay queues"
	errUnit      = "ERR UNIT S is for sorted sets, delay queues count in milliseconds"
	errNumKeys   = "ERR numkeys should be greater than 0"
	errTries     = "ERR tries is out of range, it can be 0 to 1000000000"
	errBackoff   = "ERR backoff is out of range, it can be 0 to 3155760000000 ms and at most MAX"
	errNoDead    = "ERR the queue has no dead-letter queue, name one with DQ.SET key DEAD"
	errOwnDead   = "ERR a queue cannot be its own dead-letter queue"
)

// lookup finds a queue for reading; nil is a missing one.
func lookup(c *command.Ctx, key []byte) (*delayqueue.Queue, bool) {
	return command.Object[*delayqueue.Queue](c, key, engine.KindDelayQueue)
}

// lookupWrite finds a queue that is going to be changed.
func lookupWrite(c *command.Ctx, key []byte) (*delayqueue.Queue, bool) {
	return command.ObjectWrite[*delayqueue.Queue](c, key, engine.KindDelayQueue)
}

// changed tells that a queue was changed, and removes an empty one.
func changed(v *engine.View, key []byte, q *delayqueue.Queue, event string) {
	v.Changed(key, engine.EventDelayQueue, event)
	if q.Empty() {
		v.Delete(key)
		v.Changed(key, engine.EventGeneric, "del")
	}
}

// rearm tells the keyspace that leases may end earlier than before.
func rearm(v *engine.View, key []byte) {
	if e := v.Peek(key); e.Ok() {
		v.InnerDue(e)
	}
}

func ceilMillis(micros int64) int64 { return (micros + 999) / 1000 }

// replyEntry appends an entry: what to ack it by, payload, due, attempt.
func replyEntry(c *command.Ctx, e *delayqueue.Entry) {
	var name [64]byte
	c.Array(4)
	c.Bulk(e.AppendName(name[:0]))
	c.Bulk(e.Payload)
	c.Int(ceilMillis(e.DueMicros))
	c.Int(e.Attempt)
}
