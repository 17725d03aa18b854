package commands

// Making a server: the keyspace, the table of all families, the parameters.

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/str"
	"github.com/limitkv/limitkv/commands/transactions"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// Version is limitkv's own version.
const Version = "0.1.0"

// Options are what cannot change while a server runs.
type Options struct {
	// Databases is the number of databases, 16 if 0.
	Databases int
	// Loops is the number of event loops, 0 for one a core.
	Loops int
	// Goroutines serves every connection with goroutines (no event loop).
	Goroutines bool
	// Test makes LKV.* exist.
	Test bool
	// Logf takes the log, nil for none.
	Logf func(level byte, format string, args ...any)
	// Shutdown is called by SHUTDOWN, with the exit code.
	Shutdown func(code int)
}

// Server serves sessions. It is made with New, listens with Listen and ends
// with Close.
type Server struct {
	*server
	net *resp.Server
}

// families put the table together.
var families = []func(*command.Server) []*command.Command{
	str.Commands,
	transactions.Commands,
}

// New makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Databases == 0 {
		o.Databases = 16
	}
	if o.Databases < 1 || o.Databases > engine.DatabasesMax {
		return nil, fmt.Errorf("databases must be between 1 and %d", engine.DatabasesMax)
	}
	if o.Loops <= 0 {
		o.Loops = runtime.NumCPU()
	}
	clock := engine.NewClock()
	cs := &command.Server{
		Keyspace:  engine.New(clock, o.Databases),
		Config:    command.NewConfig(),
		Clients:   command.NewClients(),
		StartedAt: clock.Now(),
		RunID:     runID(),
		TestMode:  o.Test,
		Version:   Version,
		Logf:      o.Logf,
		Shutdown:  o.Shutdown,
	}
	if cs.Logf == nil {
		cs.Logf = func(byte, string, ...any) {}
	}
	cs.SlowMicros.Store(-1)
	var seed [8]byte
	rand.Read(seed[:])
	cs.Seed(binary.LittleEndian.Uint64(seed[:]))
	s := &server{Server: cs}
	cs.Dispatch = s.nested
	cs.Locks = s.locks
	rows := make([][]*command.Command, 0, len(families))
	for _, f := range families {
		rows = append(rows, f(cs))
	}
	cs.Table = command.NewTable(rows...)
	for range o.Loops {
		s.loops = append(s.loops, cs.Workers.Get(cs))
	}
	net, err := resp.NewServer(resp.Options{Handler: s, Now: clock.Now, Loops: o.Loops, Goroutines: o.Goroutines})
	if err != nil {
		return nil, err
	}
	cs.Keyspace.Sched.Start()
	return &Server{server: s, net: net}, nil
}

// Listen begins to serve an address (network is tcp or unix) and returns it,
// with the port that was picked if it was 0.
func (s *Server) Listen(network, addr string) (string, error) {
	a, err := s.net.Listen(network, addr)
	if err != nil {
		return "", err
	}
	return a.String(), nil
}

// Close ends all connections and stops.
func (s *Server) Close() {
	s.net.Close()
	s.Keyspace.Sched.Stop()
}

func runID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
