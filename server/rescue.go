package server

// Panics in commands. A panic is a bug, but other clients need not suffer from it. If the command had not changed anything
// yet, its client gets an error, and the server goes on. Otherwise a change may be half done, and the server ends rather than
// serve such data.

import (
	"fmt"
	"runtime/debug"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// rescue answers a command that panicked with an error if its data can be trusted, and ends the server if not. It runs on the
// stack of the panic; the context has the client's writer and request. The caller settles the command afterwards.
func (s *Server) rescue(c *command.Ctx, r any) {
	name := "a command"
	if c.Cmd != nil {
		name = c.Cmd.FullName()
	}
	_, outside := r.(engine.OutsideLocks) // found before a key outside the locks was changed
	if c.Worker.Risk || c.Doubt() && (!outside || c.Untold()) {
		s.Panicked(name, r)
	}
	why := fmt.Sprintf("panic in %s: %v\n%s", name, r, debug.Stack())
	s.Logf('w', "%s", why)
	c.NoEffect()
	c.EndCommand(nil)
	c.Worker.Keep = false
	c.Worker.Lua = nil // it may have been in the middle of a script
	c.Script, c.Exec, c.Waits, c.Counted = false, false, false, false
	c.Forget()
	c.Error(command.ErrInternal)
	s.CountError(c.Failure)
	if c.Cmd != nil {
		c.Worker.Counters[c.Cmd.Index()].Failed.Add(1)
	}
	go s.ProveFree(why)
}
