// Package replication, internal to the server, is the family of replication commands, for replicas and for clients.
// server/replication does the replication.
package replication

import (
	"strconv"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/replication"
)

// family is what the commands share.
type family struct {
	s    *server.Server
	node *replication.Node
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s, s.Replication}
	return []*command.Command{
		f.roleRow(), f.failoverRow(), f.replconfRow(), f.psyncRow(), f.syncRow(),
		f.replicaofRow(), f.slaveofRow(), f.waitRow(), f.waitaofRow(),
	}
}

func (f *family) roleRow() *command.Command {
	return &command.Command{
		Name: "role", Arity: 1, Group: command.GroupServer, Since: "2.8.12",
		Flags:      command.NoScript | command.Loading | command.Stale | command.Fast,
		ACL:        []string{"admin", "dangerous"},
		Summary:    "The server's part in replication, how far its stream goes, and its replicas.",
		Complexity: "O(1)",
		Run:        f.role,
	}
}

func (f *family) role(c *command.Ctx) {
	if p, ok := f.node.Primary(); ok {
		c.Array(5)
		c.BulkString("slave")
		c.BulkString(p.Host)
		c.Int(int64(p.Port))
		c.BulkString(p.State)
		c.Int(p.Offset)
		return
	}
	there := f.node.Online()
	c.Array(3)
	c.BulkString("master")
	c.Int(f.node.Offset())
	c.Array(len(there))
	for _, r := range there {
		c.Array(3)
		c.BulkString(r.IP)
		c.BulkString(strconv.FormatInt(r.Port, 10))
		c.BulkString(strconv.FormatInt(r.Acked, 10))
	}
}
