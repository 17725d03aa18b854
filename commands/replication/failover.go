package replication

// FAILOVER: the primary and one of its replicas change places, with nothing lost. Writes are held back until a replica has
// all of the stream; then the primary follows it and says, in the PSYNC that it sends, that the replica is the primary now.

import (
	"math"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/pause"
)

// failover is one that is under way. The family's lock guards it.
type failover struct {
	state failoverState
	host  string // of the replica that was asked for or found, empty if none
	port  int64
	until int64 // on the monotonic clock, 0 for as long as it takes
	force bool  // then it is done whatever the replica has
}

type failoverState string

// The states, as INFO has them.
const (
	noFailover   failoverState = "no-failover"
	waitsForSync failoverState = "waiting-for-sync"
	failsOver    failoverState = "failover-in-progress"
)

func (f *family) failoverRow() *command.Command {
	return &command.Command{
		Name: "failover", Arity: -1, Group: command.GroupServer, Since: "6.2.0",
		Flags:      command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary:    "Changes places with a replica, once it has all that was written.",
		Complexity: "O(1)",
		Syntax:     "[TO target={host:string port:integer [FORCE]}] [ABORT] [TIMEOUT milliseconds:integer]",
		Run:        f.runFailover,
	}
}

// failingOver tells whether a failover is under way.
func (f *family) failingOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over.state != noFailover
}

func (f *family) runFailover(c *command.Ctx) {
	if f.s.Cluster {
		c.Error("ERR FAILOVER not allowed in cluster mode.")
		return
	}
	a := c.Cursor(1)
	if a.Left() == 1 && a.Is("ABORT") {
		if !f.failingOver() {
			c.Error("ERR No failover in progress.")
			return
		}
		f.aborted(c, "Failover manually aborted")
		f.s.Pause.End(c.KS, pause.ForFailover)
		c.OK()
		return
	}
	next := failover{state: waitsForSync}
	timeout, to := int64(0), false
	for a.More() {
		switch {
		case timeout == 0 && a.IsWith("TIMEOUT", 1):
			if timeout = a.Int(); timeout <= 0 {
				a.Fail("ERR FAILOVER timeout must be greater than 0")
			}
		case !to && a.IsWith("TO", 2):
			next.host, to = string(a.Bytes()), true
			next.port = a.Int()
		case !next.force && a.Is("FORCE"):
			next.force = true
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	if text := f.mayFailOver(&next, timeout, to); text != "" {
		c.Error(text)
		return
	}
	if timeout > 0 {
		next.until = engine.Monotonic() + min(timeout, math.MaxInt64/2000)*1000
	}
	if to {
		f.s.Logf('n', "FAILOVER requested to %s:%d.", next.host, next.port)
	} else {
		f.s.Logf('n', "FAILOVER requested to any replica.")
	}
	f.mu.Lock()
	f.over = next
	f.mu.Unlock()
	f.s.Pause.Begin(c.KS, pause.ForFailover, math.MaxInt64, true)
	c.OK()
}

// mayFailOver is the error for a failover that cannot begin.
func (f *family) mayFailOver(next *failover, timeout int64, to bool) string {
	replicas := f.all()
	switch {
	case f.failingOver():
		return "ERR FAILOVER already in progress."
	case f.follower.leader() != nil:
		return "ERR FAILOVER is not valid when server is a replica."
	case len(replicas) == 0:
		return "ERR FAILOVER requires connected replicas."
	case next.force && (timeout == 0 || !to):
		return "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
	case !to:
		return ""
	}
	switch r := f.replicaAt(next.host, next.port); {
	case r == nil:
		return "ERR FAILOVER target HOST and PORT is not a replica."
	case !r.isOnline():
		return "ERR FAILOVER target replica is not online."
	}
	return ""
}

// replicaAt is the replica that listens at an address, nil if there is none.
func (f *family) replicaAt(host string, port int64) *replica {
	for _, r := range f.all() {
		if ip, at := r.address(); ip == host && at == port {
			return r
		}
	}
	return nil
}

// lookFailover goes on with a failover that waits. It is called by the timer.
func (f *family) lookFailover() {
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	if over.state != waitsForSync {
		return
	}
	if over.until != 0 && engine.Monotonic() >= over.until {
		if !over.force {
			f.abort("Replica never caught up before timeout")
			return
		}
		f.s.Logf('n', "FAILOVER to %s:%d time out exceeded, failing over.", over.host, over.port)
		f.exchange(func() bool { return true })
		return
	}
	offset := f.offset()
	for _, r := range f.all() {
		ip, port := r.address()
		if r.acked.Load() != offset || !r.isOnline() || over.host != "" && (over.host != ip || over.port != port) {
			continue
		}
		f.exchange(func() bool { // under all locks nothing comes any more
			if r.acked.Load() != f.offset() {
				return false
			}
			f.mu.Lock()
			f.over.host, f.over.port = ip, port
			f.mu.Unlock()
			f.s.Logf('n', "Failover target %s:%d is synced, failing over.", ip, port)
			return true
		})
		return
	}
}

// exchange makes the server follow the replica that is to be the primary, if that is still so under all locks.
func (f *family) exchange(still func() bool) {
	_ = f.s.Hold(func(c *command.Ctx) error {
		if f.follower.leader() != nil || !still() {
			return nil
		}
		f.mu.Lock()
		if f.over.state != waitsForSync {
			f.mu.Unlock()
			return nil
		}
		f.over.state = failsOver
		host, port := f.over.host, int(f.over.port)
		f.mu.Unlock()
		f.follower.follow(c, host, port)
		return nil
	})
}

// answered says whether the replica has agreed to be the primary.
func (f *family) answered(agreed bool) {
	if !agreed {
		f.abort("Failover target rejected psync request")
		return
	}
	f.mu.Lock()
	f.over = failover{state: noFailover}
	f.mu.Unlock()
	f.s.Pause.End(f.s.Keyspace, pause.ForFailover)
}

// abort ends a failover that comes to nothing: the server stays, or is again, the primary.
func (f *family) abort(why string) {
	_ = f.s.Hold(func(c *command.Ctx) error { f.aborted(c, why); return nil })
	f.s.Pause.End(f.s.Keyspace, pause.ForFailover)
}

// aborted is abort but for the pause. All keys are held.
func (f *family) aborted(c *command.Ctx, why string) {
	f.mu.Lock()
	over := f.over
	f.over = failover{state: noFailover}
	f.mu.Unlock()
	if over.state == noFailover {
		return
	}
	to := "any replica"
	if over.host != "" {
		to = over.host + ":" + strconv.FormatInt(over.port, 10)
	}
	f.s.Logf('n', "FAILOVER to %s aborted: %s", to, why)
	if over.state == failsOver {
		f.follower.lead(c)
	}
}

// promoted makes a replica the primary whose primary says, by PSYNC, that it is to be. All keys are held. It returns the
// error if it is not.
func (f *family) promoted(c *command.Ctx) string {
	id := f.stream.State().ID
	f.s.Logf('n', "Failover request received for replid %s.", command.Repeat(c.Args[1], command.RepeatBytesMax))
	switch {
	case f.follower.leader() == nil:
		return "ERR PSYNC FAILOVER can't be sent to a master."
	case !strings.EqualFold(string(c.Args[1]), id):
		return "ERR PSYNC FAILOVER replid must match my replid."
	}
	f.follower.lead(c)
	f.s.Logf('n', "MASTER MODE enabled (failover request from '%s')", c.Session.Line(c))
	return ""
}
