package replication

// FAILOVER: the primary and one of its replicas swap roles without losing data. The primary pauses writes until a replica has
// the whole stream. Then it follows that replica and says in its PSYNC that the replica is the primary now.

import (
	"math"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/pause"
)

// failover is the state of a failover. The node's lock guards it.
type failover struct {
	state failoverState
	host  string // of the target replica, requested or found; empty if none
	port  int64
	until int64 // on the monotonic clock, 0: no limit
	force bool  // at that time fail over whatever the replica has
}

type failoverState string

// The states, as INFO names them.
const (
	noFailover   failoverState = "no-failover"
	waitsForSync failoverState = "waiting-for-sync"
	failsOver    failoverState = "failover-in-progress"
)

// FailingOver tells whether a failover is under way.
func (n *Node) FailingOver() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.over.state != noFailover
}

// Failover holds the arguments of FAILOVER.
type Failover struct {
	To            bool // Host and Port name the replica that shall become the primary
	Host          string
	Port          int64
	TimeoutMillis int64 // 0: no limit
	Force         bool  // after the timeout fail over whatever the replica has
}

// Failover begins to swap roles with a replica, or returns the error text. The caller holds all locks.
func (n *Node) Failover(c *command.Ctx, x Failover) (problem string) {
	if text := n.mayFailOver(&x); text != "" {
		return text
	}
	next := failover{state: waitsForSync, host: x.Host, port: x.Port, force: x.Force}
	if x.TimeoutMillis > 0 {
		next.until = engine.Monotonic() + min(x.TimeoutMillis, math.MaxInt64/2000)*1000
	}
	if x.To {
		n.s.Logf('n', "FAILOVER requested to %s:%d.", x.Host, x.Port)
	} else {
		n.s.Logf('n', "FAILOVER requested to any replica.")
	}
	n.mu.Lock()
	n.over = next
	n.mu.Unlock()
	n.s.Pause.Begin(c.KS, pause.ForFailover, math.MaxInt64, true)
	return ""
}

// AbortFailover aborts the failover. It reports false if there is none. The caller holds all locks.
func (n *Node) AbortFailover(c *command.Ctx) bool {
	if !n.FailingOver() {
		return false
	}
	n.aborted(c, "Failover manually aborted")
	n.s.Pause.End(c.KS, pause.ForFailover)
	return true
}

// mayFailOver returns the error for a failover that cannot begin.
func (n *Node) mayFailOver(x *Failover) string {
	replicas := n.all()
	switch {
	case n.FailingOver():
		return "ERR FAILOVER already in progress."
	case n.follower.leader() != nil:
		return "ERR FAILOVER is not valid when server is a replica."
	case len(replicas) == 0:
		return "ERR FAILOVER requires connected replicas."
	case x.Force && (x.TimeoutMillis == 0 || !x.To):
		return "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
	case !x.To:
		return ""
	}
	switch r := n.replicaAt(x.Host, x.Port); {
	case r == nil:
		return "ERR FAILOVER target HOST and PORT is not a replica."
	case !r.isOnline():
		return "ERR FAILOVER target replica is not online."
	}
	return ""
}

// replicaAt returns the replica that listens at an address, nil if there is none.
func (n *Node) replicaAt(host string, port int64) *replica {
	for _, r := range n.all() {
		if ip, at := r.address(); ip == host && at == port {
			return r
		}
	}
	return nil
}

// lookFailover fails over if the target has caught up or the time is over. The timer calls it.
func (n *Node) lookFailover() {
	n.mu.Lock()
	over := n.over
	n.mu.Unlock()
	if over.state != waitsForSync {
		return
	}
	if over.until != 0 && engine.Monotonic() >= over.until {
		if !over.force {
			n.abort("Replica never caught up before timeout")
			return
		}
		n.s.Logf('n', "FAILOVER to %s:%d time out exceeded, failing over.", over.host, over.port)
		n.exchange(func() bool { return true })
		return
	}
	offset := n.Offset()
	for _, r := range n.all() {
		ip, port := r.address()
		if r.acked.Load() != offset || !r.isOnline() || over.host != "" && (over.host != ip || over.port != port) {
			continue
		}
		n.exchange(func() bool { // under all locks no more writes come
			if r.acked.Load() != n.Offset() {
				return false
			}
			n.mu.Lock()
			n.over.host, n.over.port = ip, port
			n.mu.Unlock()
			n.s.Logf('n', "Failover target %s:%d is synced, failing over.", ip, port)
			return true
		})
		return
	}
}

// exchange makes the server follow the target replica, if still reports true under all locks.
func (n *Node) exchange(still func() bool) {
	_ = n.s.Hold(func(c *command.Ctx) error {
		if n.follower.leader() != nil || !still() {
			return nil
		}
		n.mu.Lock()
		if n.over.state != waitsForSync {
			n.mu.Unlock()
			return nil
		}
		n.over.state = failsOver
		host, port := n.over.host, int(n.over.port)
		n.mu.Unlock()
		n.follower.follow(c, host, port)
		return nil
	})
}

// answered is called with the replica's answer: whether it agreed to become the primary.
func (n *Node) answered(agreed bool) {
	if !agreed {
		n.abort("Failover target rejected psync request")
		return
	}
	n.mu.Lock()
	n.over = failover{state: noFailover}
	n.mu.Unlock()
	n.s.Pause.End(n.s.Keyspace, pause.ForFailover)
}

// abort ends a failover that failed: the server stays the primary, or becomes it again.
func (n *Node) abort(why string) {
	_ = n.s.Hold(func(c *command.Ctx) error { n.aborted(c, why); return nil })
	n.s.Pause.End(n.s.Keyspace, pause.ForFailover)
}

// aborted is abort without the end of the pause. The caller holds all locks.
func (n *Node) aborted(c *command.Ctx, why string) {
	n.mu.Lock()
	over := n.over
	n.over = failover{state: noFailover}
	n.mu.Unlock()
	if over.state == noFailover {
		return
	}
	to := "any replica"
	if over.host != "" {
		to = over.host + ":" + strconv.FormatInt(over.port, 10)
	}
	n.s.Logf('n', "FAILOVER to %s aborted: %s", to, why)
	if over.state == failsOver {
		n.follower.lead(c)
	}
}

// Promoted makes this replica the primary, as its primary has asked by PSYNC. name is the replication ID from that PSYNC. It
// returns the error if the server does not become the primary. The caller holds all locks.
func (n *Node) Promoted(c *command.Ctx, name []byte) string {
	id := n.stream.State().ID
	n.s.Logf('n', "Failover request received for replid %s.", command.Repeat(name, command.RepeatBytesMax))
	switch {
	case n.follower.leader() == nil:
		return "ERR PSYNC FAILOVER can't be sent to a master."
	case !strings.EqualFold(string(name), id):
		return "ERR PSYNC FAILOVER replid must match my replid."
	}
	n.follower.lead(c)
	n.s.Logf('n', "MASTER MODE enabled (failover request from '%s')", c.Session.Line(c))
	return ""
}
