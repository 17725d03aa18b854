// Package replication, internal to the server, is the family of replication: what replicas and their primary say to each
// other, and what clients are told of it. The stream itself is the top-level package replication. This file is the
// server's part in it, and INFO.
package replication

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// family is what the commands share.
type family struct {
	s      *server.Server
	stream *replication.Stream
	p      settings

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
	leading  sync.Mutex                       // held while the stream begins or ends to be the journal's
	place    atomic.Pointer[journal.Follower] // of the stream in the journal, as far as it is that

	asked                       atomic.Bool // a GETACK is about to be sent
	full, partial, refused      atomic.Int64
	received, sent              atomic.Int64 // bytes, from a primary and to replicas
	leftOutKeys, leftOutEffects atomic.Int64
	lastOffset, lastSent        int64 // the timer's
}

// settings are the parameters that it goes by.
type settings struct {
	minReplicas, maxLag                *atomic.Int64
	backlog, backlogTTL                *atomic.Int64
	timeout, pingPeriod                *atomic.Int64
	diskless                           *atomic.Bool
	disklessDelay, disklessMaxReplicas *atomic.Int64
	noDelayOff                         *atomic.Bool
}

// backlogBytesMin is how small a backlog can be.
const backlogBytesMin = 16 << 10

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s, stop: make(chan struct{}), over: failover{state: noFailover}}
	f.declare()
	f.stream = replication.NewStream(f.p.backlog.Load(), newID, s.Keyspace.Journal)
	s.Keyspace.Journal.OnConfirmed(f.stream.Release)
	f.follower = &follower{s: s, stream: f.stream, received: &f.received, begins: f.stopLeading, ends: f.goOnLeading, dropped: f.dropReplicas,
		failing: f.failingOver, answered: f.answered}
	f.follower.declare()
	s.Replication = f
	s.OnClose = append(s.OnClose, f.closed)
	s.OnStop = append(s.OnStop, f.end)
	s.OnResetStat = append(s.OnResetStat, func() {
		for _, n := range []*atomic.Int64{&f.full, &f.partial, &f.refused, &f.received, &f.sent} {
			n.Store(0)
		}
	})
	s.AddInfo(command.InfoSection{Name: "replication", Default: true, Write: f.info})
	s.OwnInfo = append(s.OwnInfo, f.ownInfo)
	return slices.Concat(f.rows(), f.follower.rows(), f.waitRows())
}

// declare declares the parameters.
func (f *family) declare() {
	c, p := f.s.Config, &f.p
	p.minReplicas = c.Int("min-replicas-to-write", 0, 0, math.MaxInt32, "how many replicas must be up to date for writes to be accepted")
	p.maxLag = c.Int("min-replicas-max-lag", 10, 0, math.MaxInt32, "seconds that such a replica may be behind; 0 turns min-replicas-to-write off")
	c.Alias("min-replicas-to-write", "min-slaves-to-write")
	c.Alias("min-replicas-max-lag", "min-slaves-max-lag")
	c.OnChange(f.countGood, "min-replicas-to-write", "min-replicas-max-lag")
	p.backlog = c.Memory("repl-backlog-size", 1<<20, 1, math.MaxInt64, "bytes of the stream that are kept for replicas that were away, 16kb at least")
	f.s.BacklogBytes = p.backlog
	c.OnChange(func() {
		if p.backlog.Load() < backlogBytesMin {
			p.backlog.Store(backlogBytesMin)
		}
		f.stream.Resize(p.backlog.Load())
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

// newID makes up the name of a stream.
func newID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hex.EncodeToString(b[:])
}

// Rename is for DEBUG CHANGE-REPL-ID.
func (f *family) Rename() { f.stream.Rename() }

// lead has the stream come from the journal, as a primary's does.
func (f *family) lead() {
	f.place.Load().Leave()
	f.place.Store(f.s.Keyspace.Journal.FollowFrom(f.stream, journal.LSN(f.stream.Offset())))
}

// stopLeading has the stream come from a primary, of which the server is a replica from now on.
func (f *family) stopLeading() {
	f.leading.Lock()
	defer f.leading.Unlock()
	f.place.Load().Leave()
}

// goOnLeading has the stream come from the journal where it came from a primary.
func (f *family) goOnLeading() {
	f.leading.Lock()
	defer f.leading.Unlock()
	f.lead()
}

// activate begins the stream, if nobody has asked for it so far.
func (f *family) activate() {
	f.leading.Lock()
	if f.follower.leader() == nil && f.stream.Begin(int64(f.s.Keyspace.Journal.End())) {
		f.lead()
		id := f.stream.State().ID
		f.s.Logf('n', "Replication backlog created, my new replication IDs are '%s' and '%s'", id, replication.NoID)
	}
	f.leading.Unlock()
	f.startTimer()
}

// startTimer begins what the time brings, if it has not begun.
func (f *family) startTimer() {
	f.cron.Do(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.ended {
			f.running.Add(1)
			go f.tick()
		}
	})
}

// end ends what runs beside the clients.
func (f *family) end(command.Ending) error {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	close(f.stop)
	f.running.Wait()
	return nil
}

// enter adds a replica, whose connection is served from now on by what it is to be sent. For the session's goroutine.
func (f *family) enter(r *replica) {
	sess := r.sess
	f.mu.Lock()
	f.replicas = append(f.replicas, r)
	f.mu.Unlock()
	sess.Keep(replicaKey{}, r)
	sess.Show(command.ShownReplica, true)
	sess.Aside |= command.AsideReplica
	f.s.Connections.Limit(sess)
	sess.Conn.Post(func() {
		if !sess.Conn.Gone() {
			if f.p.noDelayOff.Load() {
				sess.Conn.Gather()
			}
			sess.Conn.Attach(r)
		}
	})
	f.countGood()
}

type replicaKey struct{}

// replicaOf is the replica that a session is, nil if it is none. For the session's goroutine.
func replicaOf(sess *command.Session) *replica {
	r, _ := sess.Slot(replicaKey{}, nil).(*replica)
	return r
}

// closed forgets a replica whose connection has ended.
func (f *family) closed(sess *command.Session) {
	r := replicaOf(sess)
	if r == nil {
		return
	}
	f.mu.Lock()
	for i, other := range f.replicas {
		if other == r {
			f.replicas = append(f.replicas[:i:i], f.replicas[i+1:]...)
			break
		}
	}
	f.noneSince = engine.Monotonic()
	f.mu.Unlock()
	r.leave()
	if r.isOnline() {
		f.s.Logf('n', "Connection with replica %s lost.", r.name())
	}
	f.countGood()
}

// all are the replicas.
func (f *family) all() []*replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*replica(nil), f.replicas...)
}

// goodOnes is how many replicas are behind by no more than min-replicas-max-lag.
func (f *family) goodOnes() (n int64) {
	now := engine.Monotonic()
	for _, r := range f.all() {
		if r.isOnline() && r.lagSeconds(now) <= f.p.maxLag.Load() {
			n++
		}
	}
	return n
}

// countGood has writes refused while there are too few of them.
func (f *family) countGood() {
	min := f.p.minReplicas.Load()
	f.s.TooFewReplicas.Store(min > 0 && f.p.maxLag.Load() > 0 && f.goodOnes() < min)
}

// dropReplicas ends the connections of all replicas: they have to ask anew from where they go on.
func (f *family) dropReplicas() {
	for _, r := range f.all() {
		f.s.Kill(r.sess)
	}
}

// Memory is what the backlog takes, all that is kept for replicas, and how far they are behind in all.
func (f *family) Memory() (backlog, buffers, replicas int64) {
	st := f.stream.State()
	backlog = min(st.Kept, f.p.backlog.Load())
	for _, r := range f.all() {
		replicas += r.Unsent()
	}
	return backlog, st.Kept, replicas
}

func (f *family) info(w *command.InfoWriter) {
	w.Section("Replication")
	if l := f.follower.leader(); l != nil {
		w.Line("role", "slave")
		l.info(w)
	} else {
		w.Line("role", "master")
	}
	replicas := f.all()
	w.Line("connected_slaves", len(replicas))
	if f.p.minReplicas.Load() > 0 && f.p.maxLag.Load() > 0 {
		w.Line("min_slaves_good_slaves", f.goodOnes())
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
	st := f.stream.State()
	f.mu.Lock()
	over := f.over.state
	f.mu.Unlock()
	w.Line("master_failover_state", string(over))
	w.Line("master_replid", st.ID)
	w.Line("master_replid2", st.ID2)
	w.Line("master_repl_offset", f.offset())
	w.Line("second_repl_offset", st.Second)
	w.Line("repl_backlog_active", flag(st.Active))
	w.Line("repl_backlog_size", f.p.backlog.Load())
	w.Line("repl_backlog_first_byte_offset", st.First)
	w.Line("repl_backlog_histlen", st.Kept)
}

// offset is how far the stream goes, or, while there is none, as far as a log counts.
func (f *family) offset() int64 {
	st := f.stream.State()
	if st.Active {
		return st.Offset
	}
	return max(st.Offset, int64(f.s.Keyspace.Journal.End()))
}

// Traffic is how many bytes came from a primary and went to replicas.
func (f *family) Traffic() (received, sent int64) { return f.received.Load(), f.sent.Load() }

// Syncs counts synchronisations.
func (f *family) Syncs() (full, partial, refused int64) {
	return f.full.Load(), f.partial.Load(), f.refused.Load()
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// ownInfo tells what replicas were not sent that know Redis's types alone.
func (f *family) ownInfo(w *command.InfoWriter) {
	w.Line("replication_left_out_keys", f.leftOutKeys.Load())
	w.Line("replication_left_out_effects", f.leftOutEffects.Load())
}
