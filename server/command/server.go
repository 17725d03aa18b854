package command

// Server is what all sessions share.

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/histogram"
	"github.com/limitkv/limitkv/server/longrun"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/pause"
	"github.com/limitkv/limitkv/server/prefix"
)

// Server is what the server's parts and all commands share. Parts and families keep their own state themselves.
type Server struct {
	Functions Functions
	Log       Log
	Host      Host
	Keyspace  *engine.Keyspace
	Table     *Table
	Config    *params.Config
	Clients   *Clients
	// Namespaces are further keyspaces, for tests.
	Namespaces Namespaces
	Stats      Stats
	// Prefixes counts calls of limiters and locks, and deliveries of queues.
	Prefixes prefix.Set
	Workers  Workers
	Long     longrun.Runs
	// BlockedClients counts the sessions that wait.
	BlockedClients atomic.Int64

	// UserSettings are the user lines of the settings.
	UserSettings []params.Setting
	// Loading is whether the server loads its files, and the progress.
	Loading LoadProgress
	// Ending is the Ending of a shutdown. Running tells whether the server has begun to serve.
	Ending  atomic.Int32
	Running atomic.Bool
	// LoadedKeys and ExpiredKeys count the keys of the last file that was loaded.
	LoadedKeys, ExpiredKeys atomic.Int64
	// Tracking is the number of sessions that use client-side caching (see tracking.Table).
	Tracking atomic.Int64
	// Injecting: faults.Injector is called for every command of a client.
	Injecting atomic.Bool

	// MaxMemory is the limit of memory in use in bytes, 0: none. ClientBytes is the memory of all clients, sparedBytes that of
	// clients with CLIENT NO-EVICT, MaxClientBytes the limit for the others, 0: none.
	MaxMemory, ClientBytes, sparedBytes, MaxClientBytes atomic.Int64
	letGo                                               atomic.Int64 // freed pieces since the host was last notified
	// OtherMemory are functions that return the memory of the server's parts besides the keys, in bytes.
	OtherMemory []func() int64
	otherBytes  atomic.Int64 // their sum when it was last measured
	otherLooked atomic.Int64 // Unix microseconds

	// refusesWrites is the error for writes, nil while they can be written to disk.
	refusesWrites atomic.Pointer[string]

	// Replica holds the Replica* bits of a replica. It is 0 in a primary.
	Replica atomic.Uint32

	// BacklogBytes is the size of the replication backlog (repl-backlog-size).
	BacklogBytes *atomic.Int64

	// TooFewReplicas: writes are refused, since fewer replicas than min-replicas-to-write are up to date.
	TooFewReplicas atomic.Bool

	// Monitors is the number of sessions that monitor. SlowMicros is the time from which a command is slow, negative: no
	// command is.
	Monitors, SlowMicros atomic.Int64
	// Verified counts the structures in payloads and files that were verified (sanitize-dump-payload).
	Verified atomic.Int64
	// Repaired counts values from payloads and files that were malformed and could be repaired.
	Repaired atomic.Int64
	// ScriptsMayAll allows scripts to call commands with NoScript (DEBUG SET-DISABLE-DENY-SCRIPTS).
	ScriptsMayAll atomic.Bool
	// Cluster: the server acts as a cluster of one node.
	Cluster bool
	// LazyServerDel is lazyfree-lazy-server-del: keys that a command removes as a side effect are logged as UNLINK.
	LazyServerDel *atomic.Bool
	// Pause holds CLIENT PAUSE and the server's own pauses.
	Pause pause.Pause
	// Shutdown is the state of a requested end.
	Shutdown Shutdown
	// Mutexes are locks of parts and families. After a panic ProveFree checks that none of them stays locked. LocksMax is how
	// long it waits for each, 0: the usual time.
	Mutexes  []engine.Lock
	LocksMax time.Duration
	dying    atomic.Bool

	// FS is the file system that data is written to.
	FS vfs.FS

	// StartedAt is in Unix microseconds.
	StartedAt int64
	RunID     string
	TestMode  bool
	Version   string // limitkv's
	BuildID   string

	// Info is the sections of INFO, in order; families add to it. InfoStats and InfoMemory add fields to these sections.
	Info []InfoSection
	// OwnInfo are the parts of INFO's section limitkv.
	OwnInfo               []func(w *InfoWriter)
	InfoStats, InfoMemory []func(w *InfoWriter)
	// ConfigFile is the file with the parameters, empty if there is none. Listeners describe where the server listens, Loops
	// is the number of event loops. All are for INFO.
	ConfigFile string
	Listeners  []string
	Loops      int

	random rng
}

// The bits of Server.Replica.
const (
	ReplicaFollows  uint32 = 1 << iota // there is a primary
	ReplicaReadOnly                    // replica-read-only
	ReplicaStale                       // the connection to the primary is down, and the keys may not be read meanwhile
	ReplicaNoEvicts                    // replica-ignore-maxmemory
)

// Follows tells whether the server has a primary.
func (s *Server) Follows() bool { return s.Replica.Load() != 0 }

// Hold calls fn with a context that holds all keys. Changes do not count as a client's.
func (s *Server) Hold(fn func(c *Ctx) error) (err error) {
	c := s.OwnCtx()
	c.KS.Update(c.Held, func(v *engine.View) {
		c.View = *v
		defer func() { *v = c.View }()
		err = fn(c)
		c.EndCommand(nil)
		c.TakeChanges()
	})
	return err
}

// RefuseWrites makes the server refuse writes with an error, or accept them again if text is "".
func (s *Server) RefuseWrites(text string) {
	if text == "" {
		s.refusesWrites.Store(nil)
	} else {
		s.refusesWrites.Store(&text)
	}
}

// RefusesWrites is the error for writes, nil while they are accepted.
func (s *Server) RefusesWrites() *string { return s.refusesWrites.Load() }

// OwnCtx returns a context of the server itself, for use while no client is served.
func (s *Server) OwnCtx() *Ctx {
	c := &Ctx{Writer: &resp.Writer{Proto: 2}, Request: &Request{}, Session: &Session{Authenticated: true}, Server: s}
	c.KS, c.Now = s.Keyspace, s.Keyspace.Clock.Now()
	c.Held.AddAll()
	return c
}

// Mode is the server's mode in HELLO and INFO: standalone or cluster.
func (s *Server) Mode() string {
	if s.Cluster {
		return "cluster"
	}
	return "standalone"
}

// Stats are counters of the whole server.
type Stats struct {
	Connections, Rejected, BytesIn, BytesOut atomic.Int64
	ErrorReplies                             atomic.Int64
	// DeniedAuth and the others count denials, for INFO.
	DeniedAuth, DeniedCommand, DeniedKey, DeniedChannel atomic.Int64
	// Unexpected counts the commands of a primary that failed here.
	Unexpected atomic.Int64
	// InputDrops and OutputDrops count connections dropped for too much input
	// or output.
	InputDrops, OutputDrops atomic.Int64
	// EvictedClients counts connections ended for maxmemory-clients.
	EvictedClients atomic.Int64
	// LazyFreed counts the values and keys that Redis would free in the background.
	LazyFreed atomic.Int64
	errors    sync.Map // code -> *atomic.Int64
	codes     atomic.Int64
}

// RedisVersion is the version of Redis whose behaviour commands have. Clients see it as the server's version.
const RedisVersion = "8.0.6"

// errorCodesMax limits how many codes of errors are counted, since scripts can make up any.
const errorCodesMax = 128

// errorCodeMax is the longest code. An error without a blank by then counts as ERR, as in Redis.
const errorCodeMax = 30

// CountError counts an error reply under its code.
func (s *Server) CountError(text string) {
	st := &s.Stats
	st.ErrorReplies.Add(1)
	code, _, ok := strings.Cut(text, " ")
	if !ok || len(code) > errorCodeMax {
		code = "ERR"
	}
	n, ok := st.errors.Load(code)
	if !ok {
		if st.codes.Load() >= errorCodesMax {
			return
		}
		if n, ok = st.errors.LoadOrStore(code, new(atomic.Int64)); !ok && st.codes.Add(1) == errorCodesMax {
			s.Logf('w', "Errorstats stopped adding new errors: there are %d. CONFIG RESETSTAT begins anew.", errorCodesMax)
		}
	}
	n.(*atomic.Int64).Add(1)
}

// EachError calls fn with every error code and its count.
func (s *Stats) EachError(fn func(code string, n int64)) {
	s.errors.Range(func(k, v any) bool {
		fn(k.(string), v.(*atomic.Int64).Load())
		return true
	})
}

// Reset sets the counters to zero, except those of denials, which Redis keeps, too.
func (s *Stats) Reset() {
	for _, n := range []*atomic.Int64{&s.Connections, &s.Rejected, &s.BytesIn, &s.BytesOut, &s.ErrorReplies,
		&s.InputDrops, &s.OutputDrops, &s.EvictedClients, &s.LazyFreed, &s.Unexpected} {
		n.Store(0)
	}
	s.errors.Clear()
	s.codes.Store(0)
}

// Kill closes another session's connection. From now on the session runs no command and is not listed; the connection closes a
// moment later.
func (s *Server) Kill(sess *Session) {
	sess.Killed.Store(true)
	s.Clients.Remove(sess)
	sess.Conn.Post(func() { sess.Conn.Close(false) })
}

// Worker is the state for running commands on an event loop or goroutine. One command at a time uses it.
type Worker struct {
	// Lua is the worker's interpreter, made when first used.
	Lua any
	// Counters are the worker's part of INFO commandstats, by Command.Index.
	Counters []Counters
	// Ctx is the context that the worker's commands run in.
	Ctx Ctx
	// Locked are the locks of the worker's running command, Wanted those that the next one needs.
	Locked, Wanted engine.LockSet
	// Keep: the next command needs the same locks, so they stay locked in between if they are those of all shards. Kept are those
	// locks.
	Keep bool
	Kept engine.LockSet
	// ReadAt is when the clock was read for the running command, on the monotonic clock.
	ReadAt int64
	// Risk: a panic now would leave data in doubt, whatever the View says: the worker takes locks, evicts, or serves waits.
	Risk bool
	// Nth is the number of the running command in its batch, from 1, and ReplyAt where its reply begins. Away: the command
	// takes long, and another goroutine serves its connection by now.
	Nth, ReplyAt int
	Away         bool
	// Seen is the LSN of the last change that the connection has seen or made.
	Seen journal.LSN
	// Unsafe are the replies of the batch that are not confirmed yet.
	Unsafe []Unsafe
	// Changes are changes that the keyspace's count does not have yet.
	Changes int64
	// Requests are the next ones of a connection.
	Requests [RequestsMax]Request
	queues   []Queue  // memory for the next transactions
	_        [64]byte // so that another core's worker is on another cache line
}

// RequestsMax is how many commands of a connection are resolved ahead.
const RequestsMax = engine.TouchMax

// Counters are a command's figures in INFO commandstats. Each worker has its own, so that no two cores write to one cache
// line.
type Counters struct {
	Calls, Micros, Failed, Rejected atomic.Int64
	// Times is made when the command first takes a microsecond.
	Times atomic.Pointer[histogram.Histogram]
}

// Took counts the time of calls that together took a microsecond or more.
func (n *Counters) Took(micros int64, calls int) {
	n.Micros.Add(micros)
	each := micros / int64(calls)
	if each == 0 {
		return
	}
	h := n.Times.Load()
	if h == nil {
		h = new(histogram.Histogram)
		n.Times.Store(h)
	}
	h.Add(each, calls)
}

// Workers are all workers of a server.
type Workers struct {
	mu   sync.Mutex
	all  []*Worker
	free []*Worker
}

// Get returns a worker that is not in use.
func (p *Workers) Get(s *Server) *Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		w := p.free[n-1]
		p.free = p.free[:n-1]
		return w
	}
	w := &Worker{Counters: make([]Counters, len(s.Table.All()))}
	w.Ctx.Server, w.Ctx.Worker, w.Ctx.Request = s, w, &w.Requests[0]
	w.Ctx.KS = s.Keyspace
	p.all = append(p.all, w)
	return w
}

// Put returns a worker to the pool.
func (p *Workers) Put(w *Worker) { p.mu.Lock(); p.free = append(p.free, w); p.mu.Unlock() }

// Unowned returns the counters for a command that no worker ran, because it was served while it waited.
func (p *Workers) Unowned(c *Command) *Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &p.all[0].Counters[c.index]
}

// Sum sums up the counters of a command over all workers.
func (p *Workers) Sum(c *Command) (calls, micros, failed, rejected int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.all {
		n := &w.Counters[c.index]
		calls += n.Calls.Load()
		micros += n.Micros.Load()
		failed += n.Failed.Load()
		rejected += n.Rejected.Load()
	}
	return
}

// Times sums up the histograms of a command.
func (p *Workers) Times(c *Command) *histogram.Times {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, calls := &histogram.Times{}, int64(0)
	for _, w := range p.all {
		n := &w.Counters[c.index]
		calls += n.Calls.Load()
		if h := n.Times.Load(); h != nil {
			t.Add(h)
		}
	}
	t.Complete(calls)
	return t
}

// Commands returns how many commands ran, as Redis counts them: including those in transactions and scripts, without refused
// ones.
func (p *Workers) Commands() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.all {
		for i := range w.Counters {
			n += w.Counters[i].Calls.Load()
		}
	}
	return n
}

// Reset sets all counters to zero.
func (p *Workers) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.all {
		for i := range w.Counters {
			n := &w.Counters[i]
			n.Calls.Store(0)
			n.Micros.Store(0)
			n.Failed.Store(0)
			n.Rejected.Store(0)
			n.Times.Store(nil)
		}
	}
}

// Random returns a random number. Its source can be seeded (LKV.SEED).
func (s *Server) Random() uint64 { return s.random.next() }

// Seed makes the random numbers a repeatable sequence.
func (s *Server) Seed(n uint64) { s.random.state.Store(n) }

// rng is SplitMix64. Its state is one word that is only added to, so it needs no lock. It is good enough for picking members.
type rng struct{ state atomic.Uint64 }

func (r *rng) next() uint64 {
	x := r.state.Add(0x9e3779b97f4a7c15)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
