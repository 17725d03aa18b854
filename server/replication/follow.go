package replication

// Following: the server as a replica of another one, as REPLICAOF makes it. Only the primary changes its keys. Timers and
// deadlines are left to the primary, and clients' writes are refused unless replica-read-only is no. Its stream is the
// primary's, byte for byte.
//
// Every change of the role happens under the locks of all keys. So each command, and each cut for the server's own replicas,
// runs in one role. The session of a former primary is Killed, which its next command finds.

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// follower is the part of a node that follows a primary.
type follower struct {
	n *Node
	s *command.Server

	mu    sync.Mutex
	of    *leader // nil: the server is a primary
	begun bool    // loading has ended, and the links are started
}

// leader is the primary that the server follows.
type leader struct {
	f      *follower
	host   string
	port   int
	link   *replication.Link
	sess   *command.Session
	replay command.Replayer
	ended  chan struct{} // nil until the link runs
	// syncing guards what is known to be on disk: the stream up to synced, and up to applied once the journal is synced up to
	// end.
	syncing         sync.Mutex
	synced, applied int64
	end             journal.LSN
}

func (l *leader) name() string { return l.host + ":" + strconv.Itoa(l.port) }

// leader returns the primary, nil if the server is one.
func (f *follower) leader() *leader {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of
}

// down tells whether the server has a primary but no connection to it.
func (f *follower) down() bool {
	l := f.leader()
	return l != nil && l.link.Status().State != replication.Connected
}

// follow makes the server a replica of another one. The caller holds all locks.
func (f *follower) follow(c *command.Ctx, host string, port int) {
	l := &leader{f: f, host: host, port: port}
	l.sess = &command.Session{ID: f.s.Clients.NextID(), Created: c.Now, Authenticated: true}
	if was := f.leader(); was != nil {
		was.leave()
		l.sess.SetDB(was.selected()) // the stream may continue without another SELECT
	}
	l.replay = f.s.Host.Replayer(l.sess, f.n.stream.Feed)
	l.link = replication.NewLink(l, l.name(), &f.n.received)
	l.sess.Peer = l.link
	f.mu.Lock()
	f.of = l
	begun := f.begun
	f.mu.Unlock()
	f.n.position.Follow(l.selected)
	f.s.Keyspace.Leave(true)
	f.bits()
	if begun {
		f.unblock()
		l.start()
	}
}

func (l *leader) start() {
	l.ended = make(chan struct{})
	go l.expireOwn()
	go func() {
		defer l.f.s.Caught("following a primary")
		defer close(l.ended)
		l.link.Run()
		l.replay.End()
	}()
}

// lead makes the server a primary. The caller holds all locks.
func (f *follower) lead(c *command.Ctx) {
	l := f.leader()
	if l == nil {
		return
	}
	l.leave()
	f.mu.Lock()
	f.of = nil
	f.mu.Unlock()
	f.n.position.Promote()
	f.n.dropReplicas()
	f.bits()
	f.s.Keyspace.Leave(false)
}

// leave ends the link. The caller holds all locks.
func (l *leader) leave() {
	l.sess.Killed.Store(true)
	l.f.s.Clients.Primary.CompareAndSwap(l.sess, nil)
	l.link.Stop()
}

// expireEvery is how often expireOwn runs.
const expireEvery = 100 * time.Millisecond

// expireOwn removes expired keys that this server's own clients wrote, while it follows a primary. The primary does not know
// them.
func (l *leader) expireOwn() {
	defer l.f.s.Caught("expiring keys of a replica")
	t := time.NewTicker(expireEvery)
	defer t.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-t.C:
			if !l.sess.Killed.Load() {
				l.f.s.Keyspace.ExpireOwn()
			}
		}
	}
}

// start begins to follow the primary from the settings.
func (f *follower) start() {
	f.mu.Lock()
	f.begun = true
	l := f.of
	f.mu.Unlock()
	if l != nil {
		l.sess.SetDB(f.n.position.Restored())
		l.start()
	}
}

// stop ends the link.
func (f *follower) stop() {
	if l := f.leader(); l != nil {
		l.leave()
		if l.ended != nil {
			<-l.ended
		}
	}
}

// bits sets what the server refuses as a replica.
func (f *follower) bits() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.s.Replica.Store(0)
		f.s.Keyspace.TrackOwn(false)
		return
	}
	bits := command.ReplicaFollows
	set := func(bit uint32, parameter, value string) {
		if f.s.Config.Value(parameter) == value {
			bits |= bit
		}
	}
	set(command.ReplicaReadOnly, "replica-read-only", "yes")
	set(command.ReplicaNoEvicts, "replica-ignore-maxmemory", "yes")
	if f.of.link.Status().State != replication.Connected {
		set(command.ReplicaStale, "replica-serve-stale-data", "no")
	}
	f.s.Replica.Store(bits)
	f.s.Keyspace.TrackOwn(bits&command.ReplicaReadOnly == 0)
}

// unblock disconnects the blocked clients, since another server changes the keys now.
func (f *follower) unblock() {
	for _, sess := range f.s.Clients.All() {
		if w := sess.Blocked.Load(); w != nil {
			w.Unblock(func(out *resp.Writer) {
				out.Error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
				w.Closes = true
			}, true)
		}
	}
}

// From implements replication.Follower.
func (l *leader) From() (id string, offset int64) { return l.f.n.position.From() }

// Continue implements replication.Follower.
func (l *leader) Continue(id string) error {
	return l.f.s.Hold(func(*command.Ctx) error {
		if err := l.left(); err != nil {
			return err
		}
		if was := l.f.n.stream.State().ID; l.f.n.stream.Continue(id) {
			l.f.s.Logf('n', "Master replication ID changed to %s from %s", id, was)
			l.f.n.dropReplicas()
		}
		l.begin()
		return nil
	})
}

// errNotFollowed ends a link whose primary is no longer followed.
var errNotFollowed = errors.New("the server follows another one by now, or none")

// FailsOver implements replication.Follower.
func (l *leader) FailsOver() bool { return l.f.n.FailingOver() }

// Answered implements replication.Follower.
func (l *leader) Answered(agreed bool) { l.f.n.answered(agreed) }

// begin drops a partly received transaction, which the primary sends again.
func (l *leader) begin() {
	l.replay.End()
	l.replay = l.f.s.Host.Replayer(l.sess, l.f.n.stream.Feed)
}

// Lost implements replication.Follower.
func (l *leader) Lost() {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if l.f.of == l {
		l.f.n.position.Lost()
	}
}

// Up implements replication.Follower.
func (l *leader) Up(up bool) {
	if up {
		l.f.s.Clients.Primary.Store(l.sess)
	}
	if !up || l.sess.Killed.Load() {
		l.f.s.Clients.Primary.CompareAndSwap(l.sess, nil)
	}
	l.f.bits()
}

// Log implements replication.Follower.
func (l *leader) Log(level byte, format string, args ...any) { l.f.s.Logf(level, format, args...) }

// Progress implements replication.Follower. What was applied is on disk once the journal is synced up to the end that it had
// then.
func (l *leader) Progress() (applied, durable int64) {
	applied = l.f.n.stream.Offset()
	end := l.f.s.Keyspace.Journal.End()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if synced, logs := l.f.s.Keyspace.Journal.Synced(l.end); !logs {
		l.synced, l.applied, l.end = 0, applied, end
		return applied, -1
	} else if synced {
		l.synced, l.applied, l.end = l.applied, applied, end
	}
	if synced, _ := l.f.s.Keyspace.Journal.Synced(l.end); synced {
		l.synced = l.applied
	}
	return applied, l.synced
}

// Ahead implements replication.Follower.
func (l *leader) Ahead(commands [][][]byte) { l.replay.Ahead(commands) }

// Take implements replication.Follower.
func (l *leader) Take(nth int, args [][]byte, raw []byte) (asked bool, err error) {
	switch {
	case l.sess.Killed.Load():
		return false, errNotFollowed
	case len(args) == 0, command.EqualFold(args[0], "PING"): // an empty line has no arguments
		l.replay.Pass(raw)
		return false, nil
	case command.EqualFold(args[0], "REPLCONF"):
		l.replay.Pass(raw)
		return len(args) > 1 && command.EqualFold(args[1], "GETACK"), nil
	case len(args) == 2 && !l.sess.Multi.Active && command.EqualFold(args[0], "SELECT"):
		if db, err := strconv.Atoi(string(args[1])); err == nil && db >= 0 && db < l.f.s.Keyspace.Databases() {
			l.replay.Select(db, raw)
			return false, nil
		}
	}
	if failure := l.replay.Run(nth, args, raw); failure != "" {
		l.f.s.Stats.Unexpected.Add(1)
		l.f.s.Logf('w', "== CRITICAL == This replica could not apply a command of its master: '%.200s' after processing the command '%s'. "+
			"What it has may differ from now on: %.200q", failure, command.Repeat(args[0], command.RepeatBytesMax), args)
	}
	return false, nil
}

// selected is the database that the stream has selected. The caller holds all locks.
func (l *leader) selected() int { return l.sess.DB() }

// declare declares the parameter that names the primary.
func (f *follower) declare() {
	c := f.s.Config
	c.Add(followParam(f))
	c.OnChange(f.bits, "replica-read-only", "replica-serve-stale-data", "replica-ignore-maxmemory")
}

// parse reads a host and a port. NO ONE and an empty value have no host.
func parse(value string) (host string, port int, err error) {
	words := strings.Fields(value)
	if len(words) == 0 || len(words) == 2 && strings.EqualFold(words[0], "no") && strings.EqualFold(words[1], "one") {
		return "", 0, nil
	}
	if len(words) != 2 {
		return "", 0, errors.New("wrong number of arguments")
	}
	if port, err = strconv.Atoi(words[1]); err != nil || port < 0 || port > 65535 {
		return "", 0, errors.New("Invalid master port")
	}
	return words[0], port, nil
}
