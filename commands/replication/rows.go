package replication

// The table's rows, and what those reply that are short.

import (
	"strconv"

	"github.com/limitkv/limitkv/server/command"
)

func (f *family) rows() []*command.Command {
	const internal = command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript
	return []*command.Command{
		{
			Name: "role", Arity: 1, Group: command.GroupServer, Since: "2.8.12",
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast,
			ACL:        []string{"admin", "dangerous"},
			Summary:    "The server's part in replication, how far its stream goes, and its replicas.",
			Complexity: "O(1)",
			Run:        f.role,
		},
		f.failoverRow(),
		{
			Name: "replconf", Arity: -1, Group: command.GroupServer, Since: "3.0.0",
			Flags:      command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy | command.System,
			Summary:    "What a replica says of itself: for replicas.",
			Complexity: "O(1)",
			Run:        f.replconf,
		},
		{
			Name: "psync", Arity: -3, Group: command.GroupServer, Since: "2.8.0", Flags: internal | command.WholeKeyspace,
			Summary: "Makes the connection a replica's, which goes on where it left off if it can: for replicas.",
			Syntax:  "replicationid:string offset:integer",
			Run:     f.psync,
		},
		{
			Name: "sync", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: internal,
			Summary: "Makes the connection a replica's, or sends it a snapshot: for old replicas, and for programs that fetch one.",
			Run:     f.sync,
		},
	}
}

func (f *family) role(c *command.Ctx) {
	if l := f.follower.leader(); l != nil {
		l.role(c)
		return
	}
	var there []*replica
	for _, r := range f.all() {
		if r.isOnline() {
			there = append(there, r)
		}
	}
	c.Array(3)
	c.BulkString("master")
	c.Int(f.offset())
	c.Array(len(there))
	for _, r := range there {
		ip, port := r.address()
		c.Array(3)
		c.BulkString(ip)
		c.BulkString(strconv.FormatInt(port, 10))
		c.BulkString(strconv.FormatInt(r.acked.Load(), 10))
	}
}
