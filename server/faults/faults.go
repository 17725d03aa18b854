// Package faults, internal to the server, injects faults into the commands of a server for tests, and records them: LKV.FAULT
// and LKV.LOG. It is called for commands only while there is a fault or a log, so that it costs nothing otherwise.
package faults

import (
	"bytes"
	"slices"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

// Injector holds the faults and logs of all namespaces.
type Injector struct {
	s *command.Server

	mu     sync.Mutex // guards places' values, too
	places command.PerKeyspace[place]
	lastID int64
}

// New returns a server's Injector.
func New(s *command.Server) *Injector {
	in := &Injector{s: s}
	in.places.Begin(s, nil)
	s.Mutexes = append(s.Mutexes, &in.mu)
	return in
}

// place holds the faults and the log of a namespace.
type place struct {
	faults []*Fault
	log    log
}

// Fault is a fault for the next Left commands that match Pattern.
type Fault struct {
	ID      int64
	Pattern []byte
	Left    int64
	What    Injected
}

// Injected is the effect of a fault on a command. The zero value has none.
type Injected struct {
	Error       string // the reply, if not ""
	Disconnect  bool
	DelayMicros int64 // delay before the command, by the server's clock
}

// faultsMax limits the list, as every command is compared with it.
const faultsMax = 1000

// Add adds a fault and returns its ID, 0 if there are too many.
func (in *Injector) Add(ks *engine.Keyspace, f Fault) int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.places.Of(ks)
	if len(p.faults) == faultsMax {
		return 0
	}
	in.lastID++
	f.ID = in.lastID
	p.faults = append(p.faults, &f)
	in.arm()
	return f.ID
}

// List returns the faults that have not happened yet.
func (in *Injector) List(ks *engine.Keyspace) (list []Fault) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, f := range in.places.Of(ks).faults {
		list = append(list, *f)
	}
	return list
}

// Clear removes all faults and returns how many there were.
func (in *Injector) Clear(ks *engine.Keyspace) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.places.Of(ks)
	n := len(p.faults)
	p.faults = nil
	in.arm()
	return n
}

func (p *place) sees() bool { return len(p.faults) > 0 || p.log.on }

// arm turns calls of See on or off. The caller holds mu.
func (in *Injector) arm() {
	in.s.Injecting.Store(slices.ContainsFunc(in.places.All(), (*place).sees))
}

// See logs a command and returns its fault. It ignores the commands of --test. cmd is nil for an unknown command.
func (in *Injector) See(c *command.Ctx, cmd *command.Command) (what Injected) {
	if cmd != nil && cmd.Flags&command.Test != 0 {
		return what
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.places.Of(c.KS)
	if p.log.on {
		p.log.add(c)
	}
	for i, f := range p.faults {
		if !matches(f.Pattern, c.Args, cmd) {
			continue
		}
		if f.Left--; f.Left == 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			in.arm()
		}
		return f.What
	}
	return what
}

// matches tells whether a pattern matches a command: its name, such as config|get, or, if the pattern has a blank, the whole
// line. Names match in any case.
func matches(pattern []byte, args [][]byte, cmd *command.Command) bool {
	name, rest, line := bytes.Cut(pattern, []byte(" "))
	called := args[0]
	if !line && cmd != nil {
		called = []byte(cmd.FullName())
	}
	if !glob.MatchFold(name, called) {
		// A container's name matches all its subcommands.
		return !line && glob.MatchFold(pattern, args[0])
	}
	return !line || glob.Match(rest, bytes.Join(args[1:], []byte(" ")))
}
