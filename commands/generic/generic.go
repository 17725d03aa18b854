// Package generic is the family of commands on keys of any kind.
package generic

import (
	"github.com/limitkv/limitkv/commands/command"
)

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	d := &dumper{s.Config.Dumps()}
	return append(d.restoreRows(), []*command.Command{
		d.dumpRow(), d.migrateRow(),
		delRow, unlinkRow, existsRow, touchRow, typeRow, randomkeyRow, keysRow, scanRow,
		expireRow, pexpireRow, expireatRow, pexpireatRow, persistRow,
		ttlRow, pttlRow, expiretimeRow, pexpiretimeRow,
		renameRow, renamenxRow, copyRow, moveRow, objectRow,
		sortRow(s.Config.List()), sortroRow,
		waitRow, waitaofRow,
	}...)
}

var keyspaceACL = []string{"keyspace"}
