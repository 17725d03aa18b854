package server

// What becomes of a panic in a command. It is a bug, but others need not suffer
// from it: if the command had not changed anything yet, its client is told, and
// the server goes on. If it had, nobody knows what is half changed, and the server
// ends rather than to serve it.

import (
	"fmt"
	"runtime/debug"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// rescue answers a client's command that panicked, if what it left can be trusted,
// and ends the server if not. It is called on the stack of the panic, with the
// context's writer and request those of the client. The command is to be settled.
func (s *Server) rescue(c *command.Ctx, r any) {
	name := "a command"
	if c.Cmd != nil {
		name = c.Cmd.FullName()
	}
	_, outside := r.(engine.OutsideLocks) // was found before anything was done to a key of somebody else
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
