// Package faults, internal to the server, is what a server for tests does to commands, and keeps of them: LKV.FAULT and
// LKV.LOG. It sees every command while either has something to do, so that a server without faults and without a log pays for
// neither.
package faults

import (
	"bytes"
	"slices"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

// Injector knows the faults and the logs of all namespaces.
type Injector struct {
	s *command.Server

	mu     sync.Mutex // of places' parts too
	places command.PerKeyspace[place]
	lastID int64
}

// New makes that of a server.
func New(s *command.Server) *Injector {
	in := &Injector{s: s}
	in.places.Begin(s, nil)
	s.Mutexes = append(s.Mutexes, &in.mu)
	return in
}

// place is what is known of a namespace.
type place struct {
	faults []*Fault
	log    log
}

// Fault is what is to happen to so many commands yet.
type Fault struct {
	ID      int64
	Pattern []byte
	Left    int64
	What    Injected
}

// Injected is what is to become of a command. The zero value lets it run.
type Injected struct {
	Error       string // is the reply, if not ""
	Disconnect  bool
	DelayMicros int64 // by the server's clock, before it runs
}

// faultsMax bounds the list, which every command is compared with.
const faultsMax = 1000

// Add adds a fault and returns its number, 0 if there are too many.
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

// List returns the faults that are still to happen.
func (in *Injector) List(ks *engine.Keyspace) (list []Fault) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, f := range in.places.Of(ks).faults {
		list = append(list, *f)
	}
	return list
}

// Clear takes all faults back and returns how many there were.
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

// arm has commands seen if there is anything to see them for. The caller holds mu.
func (in *Injector) arm() {
	in.s.Injecting.Store(slices.ContainsFunc(in.places.All(), (*place).sees))
}

// See logs a command and finds the fault that it is to have. LKV.* itself is not seen. cmd is nil for an unknown one.
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
		if !matches(f.Pattern, c, cmd) {
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

// matches tells whether a pattern is that of a command: of its name, with its subcommand's behind a |, or, if there is a
// blank in the pattern, of the whole line. Case does not count in names.
func matches(pattern []byte, c *command.Ctx, cmd *command.Command) bool {
	name, rest, line := bytes.Cut(pattern, []byte(" "))
	called := c.Args[0]
	if !line && cmd != nil {
		called = []byte(cmd.FullName())
	}
	if !glob.MatchFold(name, called) {
		// A container's name stands for all its subcommands.
		return !line && glob.MatchFold(pattern, c.Args[0])
	}
	return !line || glob.Match(rest, bytes.Join(c.Args[1:], []byte(" ")))
}
