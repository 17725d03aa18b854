package replication

// FAILOVER: the primary and one of its replicas exchange roles.

import (
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/replication"
)

func (f *family) failoverRow() *command.Command {
	return &command.Command{
		Name: "failover", Arity: -1, Group: command.GroupServer, Since: "6.2.0",
		Flags:      command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary:    "Changes places with a replica, once it has all that was written.",
		Complexity: "O(1)",
		Syntax:     "[TO target={host:string port:integer [FORCE]}] [ABORT] [TIMEOUT milliseconds:integer]",
		Run:        f.failover,
	}
}

func (f *family) failover(c *command.Ctx) {
	if f.s.Cluster {
		c.Error("ERR FAILOVER not allowed in cluster mode.")
		return
	}
	a := c.Cursor(1)
	if a.Left() == 1 && a.Is("ABORT") {
		if !f.node.AbortFailover(c) {
			c.Error("ERR No failover in progress.")
			return
		}
		c.OK()
		return
	}
	var x replication.Failover
	for a.More() {
		switch {
		case x.TimeoutMillis == 0 && a.IsWith("TIMEOUT", 1):
			if x.TimeoutMillis = a.Int(); x.TimeoutMillis <= 0 {
				a.Fail("ERR FAILOVER timeout must be greater than 0")
			}
		case !x.To && a.IsWith("TO", 2):
			x.To, x.Host = true, string(a.Bytes())
			x.Port = a.Int()
		case !x.Force && a.Is("FORCE"):
			x.Force = true
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	if text := f.node.Failover(c, x); text != "" {
		c.Error(text)
		return
	}
	c.OK()
}
