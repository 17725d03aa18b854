package persistence

// Logs of other servers. A log of this server has marks: an error in it is a bug of limitkv or a fault of the disk. A log
// without marks is loaded as Redis does it: commands that fail are skipped.

import (
	"errors"
	"strings"

	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/server/command"
)

// apply applies one command of a log.
func (f *Files) apply(sess *command.Session, args [][]byte, marked bool) error {
	if !marked && !f.changes(args) {
		return nil
	}
	err := f.s.Host.Apply(sess, args)
	if unknown := (*journal.UnknownError)(nil); err == nil || marked || errors.As(err, &unknown) {
		return err
	}
	f.s.Stats.Unexpected.Add(1)
	f.s.Logf('w', "== CRITICAL == This server is sending an error to its AOF-loading-client: %s", err)
	return nil
}

// changes tells whether a command of a log can change keys or what scripts need. Other commands do not belong in a log. Those
// that read are skipped; those that act on the server, such as SHUTDOWN, are logged and not run.
func (f *Files) changes(args [][]byte) bool {
	cmd, _ := f.s.Table.Resolve(args)
	if cmd == nil || cmd.Flags&(command.Write|command.MayReplicate) != 0 {
		return true
	}
	switch name := cmd.FullName(); {
	case name == "select" || strings.HasPrefix(name, "script|"): // a SELECT reaches this place if it names no database
		return true
	case cmd.Flags&command.ReadOnly == 0:
		f.s.Logf('w', "The command '%s' of the append only file is passed over: it changes no keys", name)
	}
	return false
}
