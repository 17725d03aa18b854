package lkv

// What LKV.FAULT and LKV.LOG share: what sees every command while either has something to
// do, so that a server without faults and without a log pays for neither.

import (
	"bytes"
	"slices"
	"sync"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

// injector is what LKV.FAULT and LKV.LOG know.
type injector struct {
	s *server.Server

	mu     sync.Mutex // of places' parts too
	places command.PerKeyspace[place]
	lastID int64
}

// place is what they know of a namespace.
type place struct {
	faults []*fault
	log    log
}

func (p *place) sees() bool { return len(p.faults) > 0 || p.log.on }

// arm has commands seen if there is anything to see them for. The caller holds mu.
func (in *injector) arm() {
	in.s.Injecting.Store(slices.ContainsFunc(in.places.All(), (*place).sees))
}

// See logs a command and finds the fault that it is to have. LKV.* itself is not seen. cmd is nil for an unknown one.
func (in *injector) See(c *command.Ctx, cmd *command.Command) (what command.Injected) {
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
		if !matches(f.pattern, c, cmd) {
			continue
		}
		if f.left--; f.left == 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			in.arm()
		}
		return f.what
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
