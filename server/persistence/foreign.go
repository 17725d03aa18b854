package persistence

// Logs of other servers. What this server wrote has marks, and an error in it is a fault of ours or of the disk. What has none
// is loaded as Redis loads it: a command that errs is passed over.

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

// changes tells whether a command of a log can change keys or what scripts need. No other command has a place in a log: what
// reads is passed over, and one that does something to the server, SHUTDOWN for example, is not run but told.
func (f *Files) changes(args [][]byte) bool {
	cmd, _ := f.s.Table.Resolve(args)
	if cmd == nil || cmd.Flags&(command.Write|command.MayReplicate) != 0 {
		return true
	}
	switch name := cmd.FullName(); {
	case name == "select" || strings.HasPrefix(name, "script|"): // SELECT is here where it names no database
		return true
	case cmd.Flags&command.ReadOnly == 0:
		f.s.Logf('w', "The command '%s' of the append only file is passed over: it changes no keys", name)
	}
	return false
}
