// Package lifecycle, internal to the server, is the family of commands on the server and its data as a whole: SHUTDOWN,
// emptying databases, and modules. This file ends the server.
package lifecycle

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/longrun"
)

type family struct{ s *server.Server }

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s}
	return append(f.flushRows(), f.shutdownRow(), moduleRow())
}

func (f *family) shutdownRow() *command.Command {
	return &command.Command{
		Name: "shutdown", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
		Flags:      command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
		Summary:    "Ends the server, with a last snapshot if there are save points.",
		Complexity: "O(N) in the number of connections",
		Syntax:     "[save-selector=(NOSAVE | SAVE)] [NOW] [FORCE] [ABORT]",
		History:    [][2]string{{"7.0.0", "NOW, FORCE and ABORT."}},
		Run:        f.shutdown,
	}
}

func (f *family) shutdown(c *command.Ctx) {
	var save, nosave, now, force, abort bool
	a := c.Cursor(1)
	for a.More() {
		switch {
		case a.Is("NOSAVE"):
			nosave = true
		case a.Is("SAVE"):
			save = true
		case a.Is("NOW"):
			now = true
		case a.Is("FORCE"):
			force = true
		case a.Is("ABORT"):
			abort = true
		default:
			a.Syntax()
		}
	}
	if abort && (save || nosave || now || force) || save && nosave {
		a.Syntax()
	}
	switch {
	case a.Failed(c):
	case (c.Script || c.Exec) && !now && !abort:
		c.Error("ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client")
	case abort:
		if !f.s.Shutdown.Abort() {
			c.Error("ERR No shutdown in progress.")
			return
		}
		f.s.Logf('n', "Shutdown manually aborted.")
		c.OK()
	case !nosave && f.s.Long.Slow() != nil:
		c.Error(longrun.ErrBusyScript)
	default:
		f.s.Logf('n', "SHUTDOWN by client %d %s", c.Session.ID, c.Session.Name())
		end := command.End{Now: now, Force: force}
		switch {
		case save:
			end.How = command.EndSaving
		case nosave:
			end.How = command.EndDiscarding
		}
		if !f.s.Ends() {
			c.Error("ERR this server is ended by the program that it is part of")
			return
		}
		var failed func()
		if c.CanBlock() {
			w := c.NewWait(nil, engine.KindNone, 0)
			c.Block(w)
			failed = func() {
				w.Unblock(func(w *resp.Writer) { w.Error("ERR Errors trying to SHUTDOWN. Check logs.") }, false)
			}
		}
		if f.s.Shutdown.Ask(end, failed) {
			f.s.End()
		}
	}
}
