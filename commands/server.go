package commands

// Making a server: the keyspace, the table of all families, the parameters.

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/commands/acl"
	"github.com/limitkv/limitkv/commands/bitmap"
	"github.com/limitkv/limitkv/commands/catalog"
	"github.com/limitkv/limitkv/commands/cluster"
	"github.com/limitkv/limitkv/commands/config"
	"github.com/limitkv/limitkv/commands/connection"
	"github.com/limitkv/limitkv/commands/debug"
	"github.com/limitkv/limitkv/commands/delayqueue"
	"github.com/limitkv/limitkv/commands/generic"
	"github.com/limitkv/limitkv/commands/geo"
	"github.com/limitkv/limitkv/commands/hash"
	"github.com/limitkv/limitkv/commands/hyperloglog"
	"github.com/limitkv/limitkv/commands/info"
	"github.com/limitkv/limitkv/commands/latency"
	"github.com/limitkv/limitkv/commands/lifecycle"
	"github.com/limitkv/limitkv/commands/list"
	"github.com/limitkv/limitkv/commands/lkv"
	"github.com/limitkv/limitkv/commands/lock"
	"github.com/limitkv/limitkv/commands/memory"
	"github.com/limitkv/limitkv/commands/monitor"
	"github.com/limitkv/limitkv/commands/observe"
	"github.com/limitkv/limitkv/commands/persistence"
	"github.com/limitkv/limitkv/commands/pubsub"
	"github.com/limitkv/limitkv/commands/ratelimit"
	"github.com/limitkv/limitkv/commands/replication"
	"github.com/limitkv/limitkv/commands/scripting"
	"github.com/limitkv/limitkv/commands/set"
	"github.com/limitkv/limitkv/commands/sortedset"
	"github.com/limitkv/limitkv/commands/str"
	"github.com/limitkv/limitkv/commands/stream"
	"github.com/limitkv/limitkv/commands/transactions"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/value"
	"github.com/limitkv/limitkv/zset/wyhash"
)

// Version is limitkv's own version, that of CHANGELOG.md's first section.
const Version = "0.2.0"

// Options are what cannot change while a server runs.
type Options struct {
	// Settings are the parameters given at start.
	Settings []params.Setting
	// Loops is the number of event loops, 0 for one a processor. FixedLoops gives
	// each a thread of its own from the start, as tests want that look for races;
	// otherwise it gets one when that helps.
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
	// Shutdown is called by SHUTDOWN: it has Prepare and then Close called, elsewhere.
	Shutdown func()
	// Served is called when nobody is served any more and what is to be kept is about
	// to be written, which may take longer than shutdown-timeout.
	Served func()
	// Fatal ends the process where the server cannot go on: a panic left what it
	// holds in doubt, or a lock. text is in the log already. If it is nil or returns,
	// the process panics with the text.
	Fatal func(text string)
	// Freed is told that much memory has been let go, which the runtime may not find
	// for long. Collecting it is for whose process it is; nil = nobody.
	Freed func()
	// LoadLater leaves it to Load to read what is on disk, which else New does.
	LoadLater bool
	// Families are more commands. Tests have some that go wrong.
	Families []func(*command.Server) []*command.Command
}

// Server serves sessions. It is made with New, listens with Listen and ends
// with Close.
type Server struct {
	*server
	host *host
	// bound are listeners that nobody is accepted from yet. loads: Load is to be
	// called.
	bound   []bound
	binding sync.Mutex
	loads   bool
}

// bound is a listener, and whether its connections are served by goroutines.
type bound struct {
	net.Listener
	goroutines bool
}

// host is what the server runs in: its listeners, and whose program it is part of.
type host struct {
	s       *server
	net     *resp.Server
	options Options
}

// IO and the other methods are for families: see command.Host.
func (h *host) IO() []resp.IO { return h.net.IO() }

func (h *host) InRound() bool { return h.net.InRound() }

func (h *host) Watch(event int, fn func()) bool { return h.net.Watch(event, fn) }

// Dial: the other end is served by goroutines, as connections with TLS are.
func (h *host) Dial(remote net.Addr) net.Conn {
	here, there := net.Pipe()
	h.net.ServeConn(&within{there, remote})
	return here
}

// within is a connection inside the process, for somebody elsewhere.
type within struct {
	net.Conn
	remote net.Addr
}

// Inside has it count to no limit of clients: see resp.Conn.
func (w *within) Inside() {}

func (w *within) RemoteAddr() net.Addr { return w.remote }

func (h *host) Ends() bool { return h.options.Shutdown != nil }

func (h *host) Shutdown() { h.options.Shutdown() }

func (h *host) Writing() {
	if h.options.Served != nil {
		h.options.Served()
	}
}

func (h *host) Fatal(text string) {
	if h.options.Fatal != nil {
		h.options.Fatal(text)
	}
}

func (h *host) ClientTLS() (*tls.Config, error) { return h.s.params.tls.client(h.s.Config.Value) }

func (h *host) Freed() {
	if h.options.Freed != nil {
		h.options.Freed()
	}
}

// families put the table together.
var families = []func(*command.Server) []*command.Command{
	acl.Commands,
	bitmap.Commands,
	cluster.Commands,
	connection.Commands,
	delayqueue.Commands,
	lock.Commands,
	generic.Commands,
	geo.Commands,
	hash.Commands,
	hyperloglog.Commands,
	ratelimit.Commands,
	scripting.Commands,
	list.Commands,
	lkv.Commands,
	replication.Commands, // before persistence: it has ended its snapshots when that ends
	persistence.Commands,
	pubsub.Commands,
	set.Commands,
	sortedset.Commands,
	str.Commands,
	stream.Commands,
	transactions.Commands,
	catalog.Commands,
	clockCommands,
	debug.Commands,
	info.Commands,
	latency.Commands,
	lifecycle.Commands,
	memory.Commands,
	monitor.Commands,
	observe.Commands,
	config.Commands, // last: it declares the parameters that nobody else has
}

// hashes seeds the hash functions of tables and sorted sets, whose elements
// clients choose, before there is any. All servers of a process share them, so
// the first decides; in a test server the order of elements is to repeat, and
// they keep their fixed seeds.
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
	s := &server{Server: cs}
	cs.Keyspace.Sched.Stepped = s.clockStepped

	h := &host{s: s, options: o}
	cs.Host = h
	cs.Pipeline = s
	s.params = declare(cs.Config, databases)
	rows := make([][]*command.Command, 0, len(families))
	for _, f := range slices.Concat(o.Families, families) {
		rows = append(rows, f(cs))
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
	for _, fn := range cs.OnStart {
		if err := fn(); err != nil {
			return nil, err
		}
	}
	for range o.Loops {
		s.loops = append(s.loops, cs.Workers.Get(cs))
	}
	h.net, err = resp.NewServer(resp.Options{Handler: s, Now: clock.Now, Loops: o.Loops, Fixed: o.FixedLoops, Goroutines: o.Goroutines,
		Round:     cs.Keyspace.Journal.Round,
		Full:      func() string { return cs.Connections.Full() },
		Panicked:  func(r any) { cs.Panicked("an event loop", r) },
		Keepalive: time.Duration(s.params.keepalive.Load()) * time.Second})
	if err != nil {
		return nil, err
	}
	cs.Config.OnChange(func() { h.net.SetKeepalive(time.Duration(s.params.keepalive.Load()) * time.Second) }, "tcp-keepalive")
	cs.Keyspace.Sched.Start()
	whole := &Server{server: s, host: h, loads: o.LoadLater}
	if o.LoadLater {
		cs.Loading.Begin(cs.StartedAt, false)
		return whole, nil
	}
	if err := whole.load(); err != nil {
		h.net.Close()
		cs.Keyspace.Sched.Stop()
		return nil, err
	}
	return whole, nil
}

// loadQuietly is how long loading may take for clients not to see it: they wait for
// their connection to be accepted.
const loadQuietly = 50 * time.Millisecond

// Load reads what is on disk. Clients may connect meanwhile, and are told of it.
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
	for _, fn := range s.OnLoad {
		if err := fn(); err != nil {
			return err
		}
	}
	s.Running.Store(true)
	s.Loading.End()
	for _, fn := range s.OnLoaded {
		fn()
	}
	return nil
}

// accept begins to accept clients.
func (s *Server) accept() error {
	s.binding.Lock()
	defer s.binding.Unlock()
	for len(s.bound) > 0 {
		if err := s.host.net.ServeListener(s.bound[0].Listener, s.bound[0].goroutines); err != nil {
			return err
		}
		s.bound = s.bound[1:]
	}
	return nil
}

// unbind closes the listeners of which nobody was accepted.
func (s *Server) unbind() {
	s.binding.Lock()
	defer s.binding.Unlock()
	for _, b := range s.bound {
		b.Close()
	}
	s.bound = nil
}

// Listen begins to serve what port, bind and unixsocket say and returns the
// addresses. Port 0 picks a free port, the same for all addresses. With LoadLater
// clients are accepted when Load is called.
func (s *Server) Listen() (addrs []string, err error) {
	addrs, err = s.bind()
	if err == nil && !s.loads {
		err = s.accept()
	}
	if err != nil {
		s.unbind()
	}
	return addrs, err
}

func (s *Server) bind() (addrs []string, err error) {
	var secure *tls.Config
	tlsPort := s.params.tlsPort()
	if tlsPort == "0" || s.params.port() != "0" {
		port, err := s.listenTCP("tcp", s.params.port(), &addrs, nil)
		if err != nil {
			return nil, err
		}
		s.Config.Find("port").Set(port)
	}
	if tlsPort != "0" {
		if secure, err = s.params.tls.start(); err != nil {
			return nil, fmt.Errorf("tls-port: %w", err)
		}
		if _, err := s.listenTCP("tls", tlsPort, &addrs, secure); err != nil {
			return nil, err
		}
	}
	if path := s.params.unixsocket(); path != "" {
		a, err := s.listenUnix(path)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, a.String())
		s.Listeners = append(s.Listeners, "name=unix,bind="+path)
	}
	s.params.listening.Store(true)
	if len(addrs) == 0 {
		return nil, errors.New("nothing to listen on")
	}
	for _, fn := range s.OnListen {
		addr, err := fn(secure)
		if err != nil {
			return nil, err
		}
		if addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// listenTCP listens to a port of all the addresses of bind, with TLS if config
// is not nil, and returns the port: the one that was picked if it was 0.
func (s *Server) listenTCP(name, port string, addrs *[]string, config *tls.Config) (string, error) {
	for _, host := range strings.Fields(s.params.bind()) {
		optional := strings.HasPrefix(host, "-") // may be missing on this machine
		host = strings.TrimPrefix(host, "-")
		ln, err := net.Listen(listenAt(host, port))
		if err != nil {
			if optional && errors.Is(err, syscall.EADDRNOTAVAIL) || noFamily(err) {
				continue
			}
			s.Logf('w', "Failed listening on port %s (%s), aborting: %v", port, name, err)
			return "", err
		}
		*addrs = append(*addrs, ln.Addr().String())
		number := ln.Addr().(*net.TCPAddr).Port
		if config != nil {
			ln = tls.NewListener(ln, config)
		}
		s.bound = append(s.bound, bound{ln, config != nil || s.host.net.Loops() == 0})
		s.Listeners = append(s.Listeners, fmt.Sprintf("name=%s,bind=%s,port=%d", name, host, number))
		port = strconv.Itoa(number)
	}
	return port, nil
}

// listenAt is where a word of bind says to listen: as in Redis each names one
// address family, * being all of IPv4 and ::* all of IPv6.
func listenAt(host, port string) (network, at string) {
	switch {
	case host == "*":
		return "tcp4", net.JoinHostPort("0.0.0.0", port)
	case host == "::*":
		return "tcp6", net.JoinHostPort("::", port)
	case strings.Contains(host, ":"):
		return "tcp6", net.JoinHostPort(host, port)
	}
	return "tcp4", net.JoinHostPort(host, port)
}

// noFamily tells whether an error says that the machine does not have the address
// family: Redis goes on without.
func noFamily(err error) bool {
	for _, no := range []error{syscall.EAFNOSUPPORT, syscall.EPFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ESOCKTNOSUPPORT, syscall.ENOPROTOOPT} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Ready writes to the log, as Redis does, that clients are waited for.
func (s *Server) Ready() {
	for _, on := range []string{"tcp", "tls", "unix"} {
		if slices.ContainsFunc(s.Listeners, func(l string) bool { return strings.HasPrefix(l, "name="+on+",") }) {
			s.Logf('n', "Ready to accept connections %s", on)
		}
	}
}

// listenUnix listens on a unix socket. A file that a server which is gone left
// behind is replaced.
func (s *Server) listenUnix(path string) (net.Addr, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("another server listens on %s", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s.bound = append(s.bound, bound{ln, s.host.net.Loops() == 0})
	if mode, _ := strconv.ParseUint(s.params.unixsocketperm(), 8, 32); mode != 0 {
		err = os.Chmod(path, os.FileMode(mode))
	}
	return ln.Addr(), err
}

func runID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
