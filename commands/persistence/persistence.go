// Package persistence, internal to the server, is the family of persistence: SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE. The files
// are in server/persistence.
package persistence

import (
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/persistence"
)

type family struct{ files *persistence.Files }

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s.Persistence}
	return []*command.Command{f.saveRow(), f.bgsaveRow(), f.bgrewriteaofRow(), f.lastsaveRow()}
}

const (
	errSaving    = "ERR Background save already in progress"
	errRewriting = "ERR Background append only file rewriting already in progress"
)

const snapshotFlags = command.NoAsyncLoading | command.Admin | command.NoScript | command.WholeKeyspace

func (f *family) saveRow() *command.Command {
	return &command.Command{
		Name: "save", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: snapshotFlags | command.NoMulti,
		Summary:    "Writes a snapshot of all databases, while all wait.",
		Complexity: "O(N) in the number of keys",
		Run:        f.save,
	}
}

func (f *family) save(c *command.Ctx) {
	if saving, _ := f.files.UnderWay(); saving {
		c.Error(errSaving)
		return
	}
	if err := f.files.Save(c); err != nil { // the log says why
		c.Error("ERR")
		return
	}
	c.OK()
}

func (f *family) bgsaveRow() *command.Command {
	return &command.Command{
		Name: "bgsave", Arity: -1, Group: command.GroupServer, Since: "1.0.0", Flags: snapshotFlags,
		Summary:    "Writes a snapshot of all databases in the background.",
		Complexity: "O(1)",
		Syntax:     "[SCHEDULE]",
		History:    [][2]string{{"3.2.2", "SCHEDULE."}},
		Run:        f.bgsave,
	}
}

func (f *family) bgsave(c *command.Ctx) {
	schedule := len(c.Args) == 2 && command.EqualFold(c.Args[1], "SCHEDULE")
	if len(c.Args) > 1 && !schedule {
		c.Error(command.ErrSyntax)
		return
	}
	saving, rewriting := f.files.UnderWay()
	switch {
	case saving:
		c.Error(errSaving)
	case (rewriting || c.Exec) && (schedule || c.Exec):
		f.files.ScheduleSave()
		c.Status("Background saving scheduled")
	case rewriting:
		c.Error("ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.")
	default:
		if err := f.files.SaveInBackground(c); err != nil {
			c.Error("ERR " + err.Error())
			return
		}
		c.Status("Background saving started")
	}
}

func (f *family) bgrewriteaofRow() *command.Command {
	return &command.Command{
		Name: "bgrewriteaof", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: snapshotFlags,
		Summary:    "Rewrites the append-only file in the background, so that it is as short as can be.",
		Complexity: "O(1)",
		Run:        f.bgrewriteaof,
	}
}

func (f *family) bgrewriteaof(c *command.Ctx) {
	saving, rewriting := f.files.UnderWay()
	switch {
	case rewriting:
		c.Error(errRewriting)
	case saving || c.Exec:
		f.files.ScheduleRewrite()
		c.Status("Background append only file rewriting scheduled")
	default:
		if err := f.files.Rewrite(c); err != nil {
			c.Error("ERR Can't execute an AOF background rewriting. Please check the server logs for more information.")
			return
		}
		c.Status("Background append only file rewriting started")
	}
}

func (f *family) lastsaveRow() *command.Command {
	return &command.Command{
		Name: "lastsave", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
		Flags:      command.Loading | command.Stale | command.Fast,
		ACL:        []string{"admin", "dangerous"},
		Summary:    "Returns the Unix time of the last snapshot that was written, in seconds.",
		Complexity: "O(1)",
		Tips:       []string{"nondeterministic_output"},
		Run:        func(c *command.Ctx) { c.Int(f.files.LastSave()) },
	}
}
