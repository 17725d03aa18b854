package server

// The end of the server, and what Redis does for its data on disk. limitkv
// keeps nothing on disk, and says so rather than to reply OK to SAVE.

import (
	"github.com/limitkv/limitkv/commands/command"
)

const errNoDisk = "ERR " + noDisk

func (f *family) lifecycleRows() []*command.Command {
	const flags = command.NoAsyncLoading | command.Admin | command.NoScript
	return []*command.Command{
		{
			Name: "bgrewriteaof", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: flags,
			Summary:    "Refused: there is no append-only file.",
			Complexity: "O(1)",
			Run:        func(c *command.Ctx) { c.Error(errNoDisk) },
		},
		{
			Name: "bgsave", Arity: -1, Group: command.GroupServer, Since: "1.0.0", Flags: flags,
			Summary:    "Refused: nothing is kept on disk.",
			Complexity: "O(1)",
			Syntax:     "[SCHEDULE]",
			Run: func(c *command.Ctx) {
				a := c.Cursor(1)
				if a.More() && (a.Left() > 1 || !a.Is("SCHEDULE")) {
					a.Syntax()
				}
				a.Fail(errNoDisk)
				a.Failed(c)
			},
		},
		{
			Name: "lastsave", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.Loading | command.Stale | command.Fast,
			ACL:        []string{"admin", "dangerous"},
			Summary:    "When data was last saved: when the server started.",
			Complexity: "O(1)",
			Tips:       []string{"nondeterministic_output"},
			Run:        func(c *command.Ctx) { c.Int(f.s.StartedAt / 1e6) },
		},
		{
			Name: "save", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: flags | command.NoMulti,
			Summary:    "Refused: nothing is kept on disk.",
			Complexity: "O(1)",
			Run:        func(c *command.Ctx) { c.Error(errNoDisk) },
		},
		{
			Name: "shutdown", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
			Summary:    "Ends the server. What it held is gone.",
			Complexity: "O(N) in the number of connections",
			Syntax:     "[save-selector=(NOSAVE | SAVE)] [NOW] [FORCE] [ABORT]",
			History:    [][2]string{{"7.0.0", "NOW, FORCE and ABORT."}},
			Run:        f.shutdown,
		},
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
		c.Error("ERR No shutdown in progress.")
	case save:
		c.Error(errNoDisk)
	case !nosave && f.s.Long.Slow() != nil:
		c.Error(command.ErrBusyScript)
	case f.s.Shutdown == nil:
		c.Error("ERR this server is ended by the program that it is part of")
	default:
		f.s.Logf('n', "SHUTDOWN by client %d %s", c.Session.ID, c.Session.Name())
		c.Session.Closing = true
		f.s.Shutdown(0)
	}
}
