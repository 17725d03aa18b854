// Package replication, internal to the server, connects it with its replicas and with its primary: their handshakes, the
// commands between them, and following a primary. The stream itself is the top-level package replication. This file has the
// list of replicas, and INFO.
package replication

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/clients"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/persistence"
)

// Node is the server as a primary of its replicas and as a replica of its primary.
type Node struct {
	s        *command.Server
	position *replication.Position
	stream   *replication.Stream // of position
	files    *persistence.Files
	limits   *clients.Limits
	p        settings

	// mu guards what follows. The stream's lock may be taken under it.
	mu        sync.Mutex
	replicas  []*replica
	waits     []*waiting
	syncing   bool
	over      failover
	noneSince int64 // when the last replica left, on the monotonic clock
	ended     bool
	running   sync.WaitGroup // the goroutines below
	stop      chan struct{}
	cron      sync.Once

	follower *follower

	asked                       atomic.Bool // a GETACK will be sent soon
	full, partial, refused      atomic.Int64
	received, sent              atomic.Int64 // bytes, from the primary and to replicas
	leftOutKeys, leftOutEffects atomic.Int64
	lastOffset, lastSent        int64 // used by the timer only
}

// settings are the parameters of replication.
type settings struct {
	minReplicas, maxLag                *atomic.Int64
	backlog, backlogTTL                *atomic.Int64
	timeout, pingPeriod                *atomic.Int64
	diskless                           *atomic.Bool
	disklessDelay, disklessMaxReplicas *atomic.Int64
	noDelayOff                         *atomic.Bool
}

// backlogBytes is the default size of the backlog, backlogBytesMin the smallest.
const (
	backlogBytes    = 1 << 20
	backlogBytesMin = 16 << 10
)

// NewPosition returns a position whose stream stores nothing yet.
func NewPosition(s *command.Server) *replication.Position {
	stream := replication.NewStream(backlogBytes, newID, s.Keyspace.Journal)
	s.Keyspace.Journal.OnConfirmed(stream.Release)
	return replication.NewPosition(stream, s.Keyspace.Journal)
}

// New declares the parameters of replication. The server follows no primary before Start.
func New(s *command.Server, position *replication.Position, files *persistence.Files, limits *clients.Limits) *Node {
	n := &Node{s: s, position: position, stream: position.Stream, files: files, limits: limits, stop: make(chan struct{}), over: failover{state: noFailover}}
	n.follower = &follower{n: n, s: s}
	n.declare()
	n.follower.declare()
	s.AddInfo(command.InfoSection{Name: "replication", Default: true, Write: n.info})
	return n
}

// Start begins to follow the primary from the settings. It is called after loading, as the files contain the position in the
// stream.
func (n *Node) Start() {
	if n.follower.leader() == nil && n.stream.State().Active {
		n.mu.Lock()
		n.noneSince = engine.Monotonic()
		n.mu.Unlock()
		n.startTimer()
	}
	n.follower.start()
}

// Stop ends the link to the primary and the node's goroutines.
func (n *Node) Stop() {
	n.follower.stop()
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	close(n.stop)
	n.running.Wait()
}

// ResetStats clears the counters that CONFIG RESETSTAT resets.
func (n *Node) ResetStats() {
	for _, x := range []*atomic.Int64{&n.full, &n.partial, &n.refused, &n.received, &n.sent} {
		x.Store(0)
	}
}

// declare declares the parameters.
func (n *Node) declare() {
	c, p := n.s.Config, &n.p
	p.minReplicas = c.Int("min-replicas-to-write", 0, 0, math.MaxInt32, "how many replicas must be up to date for writes to be accepted")
	p.maxLag = c.Int("min-replicas-max-lag", 10, 0, math.MaxInt32, "seconds that such a replica may be behind; 0 turns min-replicas-to-write off")
	c.Alias("min-replicas-to-write", "min-slaves-to-write")
	c.Alias("min-replicas-max-lag", "min-slaves-max-lag")
	c.OnChange(n.countGood, "min-replicas-to-write", "min-replicas-max-lag")
	p.backlog = c.Memory("repl-backlog-size", backlogBytes, 1, math.MaxInt64, "bytes of the stream that are kept for replicas that were away, 16kb at least")
	n.s.BacklogBytes = p.backlog
	c.OnChange(func() {
		if p.backlog.Load() < backlogBytesMin {
			p.backlog.Store(backlogBytesMin)
		}
		n.stream.Resize(p.backlog.Load())
	}, "repl-backlog-size")
	p.backlogTTL = c.Int("repl-backlog-ttl", 3600, 0, math.MaxInt64, "seconds that they are kept without replicas, 0 = for ever")
	p.timeout = c.Int("repl-timeout", 60, 1, math.MaxInt32, "seconds after which a silent replica or primary is disconnected")
	p.pingPeriod = c.Int("repl-ping-replica-period", 10, 1, math.MaxInt32, "seconds between pings to replicas")
	c.Alias("repl-ping-replica-period", "repl-ping-slave-period")
	p.diskless = c.Bool("repl-diskless-sync", true, "a snapshot goes to replicas without a file in between")
	p.disklessDelay = c.Int("repl-diskless-sync-delay", 5, 0, math.MaxInt32, "seconds that it waits for more replicas before it begins")
	p.disklessMaxReplicas = c.Int("repl-diskless-sync-max-replicas", 0, 0, math.MaxInt32, "how many replicas it waits for at most, 0 = any number")
	p.noDelayOff = c.Bool("repl-disable-tcp-nodelay", false, "the stream is sent in fewer, larger packets")
}

// newID makes a random replication ID.
func newID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hex.EncodeToString(b[:])
}

// Rename gives the stream a new ID (DEBUG CHANGE-REPL-ID).
func (n *Node) Rename() { n.stream.Rename() }

// activate begins the stream when it is first needed.
func (n *Node) activate() {
	if n.position.Begin() {
		id := n.stream.State().ID
		n.s.Logf('n', "Replication backlog created, my new replication IDs are '%s' and '%s'", id, replication.NoID)
	}
	n.startTimer()
}

// startTimer starts the timer, if it has not been started.
func (n *Node) startTimer() {
	n.cron.Do(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.ended {
			n.running.Add(1)
			go n.tick()
		}
	})
}

// enter adds a replica, whose connection sends the stream from now on. Only the session's goroutine calls it.
func (n *Node) enter(r *replica) {
	sess := r.sess
	n.mu.Lock()
	n.replicas = append(n.replicas, r)
	n.mu.Unlock()
	sess.Keep(replicaKey{}, r)
	sess.Show(command.ShownReplica, true)
	sess.Aside |= command.AsideReplica
	n.limits.Limit(sess)
	sess.Conn.Post(func() {
		if !sess.Conn.Gone() {
			if n.p.noDelayOff.Load() {
				sess.Conn.Gather()
			}
			sess.Conn.Attach(r)
		}
	})
	n.countGood()
}

type replicaKey struct{}

// IsReplica tells whether a session is a replica's. Only the session's goroutine calls it.
func (n *Node) IsReplica(sess *command.Session) bool { return replicaOf(sess) != nil }

// replicaOf returns the session's replica, nil if there is none. Only the session's goroutine calls it.
func replicaOf(sess *command.Session) *replica {
	r, _ := sess.Slot(replicaKey{}, nil).(*replica)
	return r
}

// Closed removes a replica whose connection has ended.
func (n *Node) Closed(sess *command.Session) {
	r := replicaOf(sess)
	if r == nil {
		return
	}
	n.mu.Lock()
	for i, other := range n.replicas {
		if other == r {
			n.replicas = append(n.replicas[:i:i], n.replicas[i+1:]...)
			break
		}
	}
	n.noneSince = engine.Monotonic()
	n.mu.Unlock()
	r.leave()
	if r.isOnline() {
		n.s.Logf('n', "Connection with replica %s lost.", r.name())
	}
	n.countGood()
}

// all returns a copy of the list of replicas.
func (n *Node) all() []*replica {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*replica(nil), n.replicas...)
}

// goodOnes counts the replicas whose lag is at most min-replicas-max-lag.
func (n *Node) goodOnes() (good int64) {
	now := engine.Monotonic()
	for _, r := range n.all() {
		if r.isOnline() && r.lagSeconds(now) <= n.p.maxLag.Load() {
			good++
		}
	}
	return good
}

// countGood makes the server refuse writes while too few replicas are good.
func (n *Node) countGood() {
	min := n.p.minReplicas.Load()
	n.s.TooFewReplicas.Store(min > 0 && n.p.maxLag.Load() > 0 && n.goodOnes() < min)
}

// dropReplicas closes the connections of all replicas. They must ask again where to continue.
func (n *Node) dropReplicas() {
	for _, r := range n.all() {
		n.s.Kill(r.sess)
	}
}

// Memory returns the bytes of the backlog, of all that is stored for replicas, and of what they have not been sent yet.
func (n *Node) Memory() (backlog, buffers, replicas int64) {
	st := n.stream.State()
	backlog = min(st.Kept, n.p.backlog.Load())
	for _, r := range n.all() {
		replicas += r.Unsent()
	}
	return backlog, st.Kept, replicas
}

func (n *Node) info(w *command.InfoWriter) {
	w.Section("Replication")
	if l := n.follower.leader(); l != nil {
		w.Line("role", "slave")
		l.info(w)
	} else {
		w.Line("role", "master")
	}
	replicas := n.all()
	w.Line("connected_slaves", len(replicas))
	if n.p.minReplicas.Load() > 0 && n.p.maxLag.Load() > 0 {
		w.Line("min_slaves_good_slaves", n.goodOnes())
	}
	now := engine.Monotonic()
	for i, r := range replicas {
		ip, port := r.address()
		lag := int64(0)
		if r.isOnline() {
			lag = r.lagSeconds(now)
		}
		w.Linef("slave"+strconv.Itoa(i), "ip=%s,port=%d,state=%s,offset=%d,lag=%d", ip, port, r.shown(), r.acked.Load(), lag)
	}
	st := n.stream.State()
	n.mu.Lock()
	over := n.over.state
	n.mu.Unlock()
	w.Line("master_failover_state", string(over))
	w.Line("master_replid", st.ID)
	w.Line("master_replid2", st.ID2)
	w.Line("master_repl_offset", n.Offset())
	w.Line("second_repl_offset", st.Second)
	w.Line("repl_backlog_active", flag(st.Active))
	w.Line("repl_backlog_size", n.p.backlog.Load())
	w.Line("repl_backlog_first_byte_offset", st.First)
	w.Line("repl_backlog_histlen", st.Kept)
}

// Offset is the end of the stream. While there is no stream, it is at least the journal's end.
func (n *Node) Offset() int64 {
	st := n.stream.State()
	if st.Active {
		return st.Offset
	}
	return max(st.Offset, int64(n.s.Keyspace.Journal.End()))
}

// Traffic returns how many bytes came from a primary and went to replicas.
func (n *Node) Traffic() (received, sent int64) { return n.received.Load(), n.sent.Load() }

// Syncs returns how many synchronisations were full, partial and refused.
func (n *Node) Syncs() (full, partial, refused int64) {
	return n.full.Load(), n.partial.Load(), n.refused.Load()
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// OwnInfo writes, in INFO's section limitkv, what was not sent to replicas that know Redis's types only.
func (n *Node) OwnInfo(w *command.InfoWriter) {
	w.Line("replication_left_out_keys", n.leftOutKeys.Load())
	w.Line("replication_left_out_effects", n.leftOutEffects.Load())
}

// Status holds what ROLE reports about a replica.
type Status struct {
	IP    string
	Port  int64
	Acked int64 // the offset that it has acknowledged
}

// Online returns the replicas that follow the stream.
func (n *Node) Online() (there []Status) {
	for _, r := range n.all() {
		if r.isOnline() {
			ip, port := r.address()
			there = append(there, Status{ip, port, r.acked.Load()})
		}
	}
	return there
}
