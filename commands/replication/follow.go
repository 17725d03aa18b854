package replication

// REPLICAOF makes the server follow another one, or stops that.

import (
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) replicaofRow() *command.Command { return f.followRow("replicaof", "5.0.0") }

func (f *family) slaveofRow() *command.Command {
	row := f.followRow("slaveof", "1.0.0")
	row.DeprecatedSince, row.ReplacedBy = "5.0.0", "REPLICAOF"
	return row
}

func (f *family) followRow(name, since string) *command.Command {
	return &command.Command{
		Name: name, Arity: 3, Group: command.GroupServer, Since: since,
		Flags:      command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary:    "Makes the server a replica of another one, or a primary.",
		Complexity: "O(1)",
		Syntax:     "args=(host-port={host:string port:integer} | no-one={NO ONE})",
		Run:        f.replicaof,
	}
}

func (f *family) replicaof(c *command.Ctx) {
	a := c.Cursor(1)
	primary, follows := f.node.Primary()
	switch {
	case f.s.Cluster:
		c.Error("ERR REPLICAOF not allowed in cluster mode.")
		return
	case f.node.FailingOver():
		c.Error("ERR REPLICAOF not allowed while failing over.")
		return
	case f.s.Loading.On():
		c.Error(command.ErrLoading)
		return
	case a.Is("NO") && a.Is("ONE"):
		if follows {
			f.node.Lead(c)
			f.s.Logf('n', "MASTER MODE enabled (user request from '%s')", c.Session.Line(c))
		}
		c.OK()
		return
	}
	if f.node.IsReplica(c.Session) { // the change ends the connections of all replicas
		c.Error("ERR Command is not valid when client is a replica.")
		return
	}
	n, ok := number.ParseInt(c.Args[2])
	if !ok || n < 0 || n > 65535 {
		c.Error("ERR Invalid master port")
		return
	}
	host, port := string(c.Args[1]), int(n)
	if follows && primary.Port == port && command.EqualFold(c.Args[1], primary.Host) {
		f.s.Logf('n', "REPLICAOF would result into synchronization with the master we are already connected with. No operation performed.")
		c.Status("OK Already connected to specified master")
		return
	}
	f.node.Follow(c, host, port)
	f.s.Logf('n', "REPLICAOF %s:%d enabled (user request from '%s')", host, port, c.Session.Line(c))
	c.OK()
}
