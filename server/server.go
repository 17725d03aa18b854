package server

// Making a server: the keyspace, the parameters, the parts, the table of commands.

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/clients"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/faults"
	"github.com/limitkv/limitkv/server/latency"
	"github.com/limitkv/limitkv/server/memory"
	"github.com/limitkv/limitkv/server/monitor"
	"github.com/limitkv/limitkv/server/observe"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/persistence"
	"github.com/limitkv/limitkv/server/pubsub"
	"github.com/limitkv/limitkv/server/replication"
	"github.com/limitkv/limitkv/server/tracking"
	"github.com/limitkv/limitkv/server/value"
	"github.com/limitkv/limitkv/zset/wyhash"
)

// Version is limitkv's own version, that of CHANGELOG.md's first section.
const Version = "0.2.0"

// Options are what cannot change while a server runs.
type Options struct {
	// Settings are the parameters given at start.
	Settings []params.Setting
	// Loops is the number of event loops, 0 for one a processor. FixedLoops gives each loop a thread of its own from the
	// start, for tests that look for races. Otherwise the supervisor gives and takes threads.
	Loops      int
	FixedLoops bool
	// Goroutines serves every connection with goroutines (no event loop).
	Goroutines bool
	// Test makes LKV.* exist.
	Test bool
	// Log takes the log unless logfile says otherwise, nil for none.
	Log io.Writer
	// Logf, if set, takes the lines of all levels in its place.
	Logf func(level byte, format string, args ...any)
	// ConfigFile is where Settings were read from, empty if they were not.
	ConfigFile string
	// Shutdown is called by SHUTDOWN. It has another goroutine call Prepare and then Close.
	Shutdown func()
	// Served is called when no client is served any more, before the final write to disk, which may take longer than
	// shutdown-timeout.
	Served func()
	// Fatal ends the process when the server cannot go on: a panic left data in doubt, or a lock behind. text is in the log
	// already. If Fatal is nil or returns, the process panics with the text.
	Fatal func(text string)
	// Freed is called when much memory has been released, which the runtime may not notice for long. It is up to the program
	// to have it collected. nil for nothing.
	Freed func()
	// LoadLater: New does not read the files; Load does.
	LoadLater bool
	// Families are the commands, each family's made by a function.
	Families []func(*Server) []*command.Command
}

// Server serves sessions. It is made with New, listens with Listen and ends with Close.
type Server struct {
	*command.Server
	// ACL has the users, Connections the limits of connections, Tracker what clients cache. Persistence has the files,
	// Replication the replicas and the primary.
	ACL         *acl.Users
	Connections *clients.Limits
	Tracker     *tracking.Table
	Persistence *persistence.Files
	Replication *replication.Node
	// Faults has what tests do to commands.
	Faults *faults.Injector
	// PubSub has the subscriptions, Monitor the sessions that see all commands.
	PubSub  *pubsub.Hub
	Monitor *monitor.Monitors
	// Latency has the slow log and the latency monitor.
	Latency *latency.Monitor
	// Keeper keeps memory below its limits.
	Keeper *memory.Keeper

	site   *observe.Site
	host   *host
	params settings
	// loops are the workers of the event loops.
	loops []*command.Worker
	// bound are listeners that do not accept clients yet. loads: Load is still to be called.
	bound   []bound
	binding sync.Mutex
	loads   bool
}

// hashes seeds the hash functions of tables and sorted sets before the first use, since clients choose the elements. All
// servers of a process share the seeds, so the first server decides. A test server keeps the fixed seeds, so that the order
// of elements repeats.
var hashes sync.Once

func randomSeed() uint64 {
	var seed [8]byte
	rand.Read(seed[:])
	return binary.LittleEndian.Uint64(seed[:])
}

// New makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	databases, err := databasesOf(o.Settings)
	if err != nil {
		return nil, err
	}
	isCluster, given := clusterOf(o.Settings)
	if isCluster {
		databases = 1
	}
	if databases < 1 || databases > engine.DatabasesMax {
		return nil, fmt.Errorf("databases must be between 1 and %d", engine.DatabasesMax)
	}
	if o.Loops <= 0 {
		o.Loops = runtime.GOMAXPROCS(0)
	}
	clock := engine.NewClock()
	cs := &command.Server{
		Keyspace:  engine.New(clock, databases),
		Config:    params.NewConfig(),
		Clients:   command.NewClients(),
		FS:        vfs.OS,
		StartedAt: clock.Now(),
		RunID:     runID(),
		TestMode:  o.Test,
		Cluster:   isCluster,
		Version:   Version,
	}
	cs.Keyspace.Clone = value.Clone
	cs.Config.WhileLoading(cs.Loading.Error)
	lines := &log{clock: clock, out: o.Log}
	if o.Log == nil {
		lines.out = io.Discard
	}
	lines.declare(cs.Config)
	cs.Log = lines
	if o.Logf != nil {
		cs.Log = logFunc(o.Logf)
	}
	cs.SlowMicros.Store(-1)
	hashes.Do(func() {
		if !o.Test {
			wyhash.Seed(randomSeed())
		}
	})
	cs.Seed(randomSeed())
	cs.Keyspace.Sched.Panicked = func(r any) { cs.Panicked("what is due", r) }
	s := &Server{Server: cs, loads: o.LoadLater}
	cs.Keyspace.Sched.Stepped = s.clockStepped

	s.host = &host{Server: s, options: o}
	cs.Host = s.host
	s.params = declare(cs.Config, databases)
	s.ACL = acl.New(cs)
	s.Connections = clients.New(cs, s.ACL)
	s.Tracker = tracking.New(cs)
	s.Faults = faults.New(cs)
	position := replication.NewPosition(cs)
	s.Persistence = persistence.New(cs, position)
	s.Replication = replication.New(cs, position, s.Persistence, s.Connections)
	s.PubSub = pubsub.New(cs, s.Connections)
	s.ACL.Listeners = s.PubSub.Each
	s.Keeper = memory.New(cs)
	s.Monitor = monitor.New(cs)
	s.Latency = latency.New(cs)
	s.site = observe.New(cs, s.ACL, s.Connections)
	rows := make([][]*command.Command, 0, len(o.Families))
	for _, f := range o.Families {
		rows = append(rows, f(s))
	}
	cs.Loops, cs.ConfigFile = o.Loops, o.ConfigFile
	cs.Table = command.NewTable(rows...)
	settings, err := renamed(cs.Table, given)
	if err != nil {
		return nil, err
	}
	settings = slices.DeleteFunc(settings, func(set params.Setting) bool {
		user := strings.EqualFold(set.Name, "user")
		if user {
			cs.UserSettings = append(cs.UserSettings, set)
		}
		return user
	})
	if err := cs.Config.Start(settings, func(text string) { cs.Logf('w', "%s", text) }); err != nil {
		return nil, err
	}
	cs.Keyspace.Strict = o.Test
	for _, fn := range []func() error{s.ACL.Start, s.Connections.Start} {
		if err := fn(); err != nil {
			return nil, err
		}
	}
	for range o.Loops {
		s.loops = append(s.loops, cs.Workers.Get(cs))
	}
	s.host.net, err = resp.NewServer(resp.Options{Handler: s, Now: clock.Now, Loops: o.Loops, Fixed: o.FixedLoops, Goroutines: o.Goroutines,
		Round:     cs.Keyspace.Journal.Round,
		Full:      s.Connections.Full,
		Panicked:  func(r any) { cs.Panicked("an event loop", r) },
		Keepalive: time.Duration(s.params.keepalive.Load()) * time.Second})
	if err != nil {
		return nil, err
	}
	cs.Config.OnChange(func() { s.host.net.SetKeepalive(time.Duration(s.params.keepalive.Load()) * time.Second) }, "tcp-keepalive")
	cs.Keyspace.Sched.Start()
	if o.LoadLater {
		cs.Loading.Begin(cs.StartedAt, false)
		return s, nil
	}
	if err := s.load(); err != nil {
		s.host.net.Close()
		cs.Keyspace.Sched.Stop()
		return nil, err
	}
	return s, nil
}

// loadQuietly is how long the server delays accepting clients while it loads, so that they do not see a short load.
const loadQuietly = 50 * time.Millisecond

// Load reads the files. Clients that connect meanwhile get LOADING errors.
func (s *Server) Load() error {
	s.greet()
	loaded := make(chan error, 1)
	go func() {
		defer s.Caught("loading")
		loaded <- s.load()
	}()
	var err error
	select {
	case err = <-loaded:
	case <-time.After(loadQuietly):
		if err = s.accept(); err == nil {
			return <-loaded
		}
	}
	if err == nil {
		err = s.accept()
	}
	return err
}

func (s *Server) load() error {
	if err := s.Persistence.Load(); err != nil {
		return err
	}
	s.Running.Store(true)
	s.Loading.End()
	s.Replication.Start()
	return nil
}

func runID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
