// Package generic, internal to the server, is the family of commands on keys of any kind.
package generic

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	d := &dumper{s.Config.Dumps()}
	s.LazyServerDel = s.Config.Bool("lazyfree-lazy-server-del", false, "keys that commands of another purpose remove are logged as UNLINK")
	s.CauseEffects(
		s.Config.Bool("lazyfree-lazy-expire", false, "keys that expire are logged as UNLINK").Load,
		s.Config.Bool("lazyfree-lazy-eviction", false, "keys that are evicted are logged as UNLINK").Load,
		func(dst []byte, e engine.Entry) []byte { return rdb.AppendDump(dst, e, d.Format()) })
	return append(d.restoreRows(), []*command.Command{
		d.dumpRow(), d.migrateRow(),
		delRow, unlinkRow, existsRow, touchRow, typeRow, randomkeyRow, keysRow, scanRow,
		expireRow, pexpireRow, expireatRow, pexpireatRow, persistRow,
		ttlRow, pttlRow, expiretimeRow, pexpiretimeRow,
		renameRow, renamenxRow, copyRow, moveRow, objectRow,
		sortRow(s.Config.List()), sortroRow,
	}...)
}

var keyspaceACL = []string{"keyspace"}
