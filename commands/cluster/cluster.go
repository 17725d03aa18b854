// Package cluster, internal to the server, is the family of commands of Redis Cluster. Unless cluster-enabled is set, the
// server is no cluster and says so as Redis does. If it is set, the server answers as a cluster of one node that always has
// all slots, so that clients for clusters can connect. It never redirects, and it has no other node to fail over to. It
// refuses commands that would change the cluster.
package cluster

import (
	"fmt"
	"sync/atomic"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

type family struct {
	s *server.Server
	// node and shard are the ids, 40 hexadecimal digits, new at each start.
	node, shard string
	epoch       atomic.Int64
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s, node: newID(s), shard: newID(s)}
	own := func(name string, flags command.Flags, summary string) *command.Command {
		return &command.Command{
			Name: name, Arity: 1, Group: command.GroupCluster, Since: "3.0.0", Flags: flags, ACL: []string{"connection"},
			Summary: summary, Complexity: "O(1)", Run: f.only((*command.Ctx).OK),
		}
	}
	rows := []*command.Command{
		own("asking", command.Fast, "Lets the next command reach a slot that is moving; none ever is."),
		own("readonly", command.Fast|command.Loading|command.Stale, "Lets a replica answer reads; there are no replicas."),
		own("readwrite", command.Fast|command.Loading|command.Stale, "Ends READONLY."),
	}
	container := &command.Command{
		Name: "cluster", Arity: -2, Group: command.GroupCluster, Since: "3.0.0",
		Summary: "Commands about the cluster, which is one node if cluster-enabled is set.", Complexity: "O(1)",
		Sub: []*command.Command{command.HelpRow("5.0.0")},
	}
	for _, row := range f.subs() {
		row.Complexity = "O(1)"
		if row.Flags&command.WholeKeyspace != 0 {
			row.Complexity = "O(N) in the number of all keys"
		}
		row.Run = f.only(row.Run)
		container.Sub = append(container.Sub, row)
	}
	return append(rows, container)
}

// newID makes an id of a node or a shard.
func newID(s *server.Server) string {
	return fmt.Sprintf("%016x%016x%08x", s.Random(), s.Random(), uint32(s.Random()))
}

// only runs a handler if the server is a cluster.
func (f *family) only(run func(c *command.Ctx)) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		if !f.s.Cluster {
			c.Error("ERR This instance has cluster support disabled")
			return
		}
		run(c)
	}
}

const (
	stale   = command.Stale
	loading = command.Loading | command.Stale
	admin   = command.Admin | command.Stale
	change  = command.Admin | command.Stale | command.NoAsyncLoading
)

var varying = []string{"nondeterministic_output"}

func (f *family) subs() []*command.Command {
	row := func(name, since string, arity int, flags command.Flags, tips []string, syntax, summary string, run func(c *command.Ctx)) *command.Command {
		return &command.Command{Name: name, Since: since, Arity: arity, Flags: flags, Tips: tips, Syntax: syntax, Summary: summary, Run: run}
	}
	rows := []*command.Command{
		row("addslots", "3.0.0", -3, change, nil, "slot:integer...", "Gives this node slots, which it has.", addSlots),
		row("addslotsrange", "7.0.0", -4, change, nil, "range={start-slot:integer end-slot:integer}...", "Gives this node ranges of slots, which it has.", addSlotsRange),
		row("bumpepoch", "3.0.0", 2, change, varying, "", "Raises the epoch.", f.bumpEpoch),
		row("count-failure-reports", "3.0.0", 3, admin, varying, "node-id:string", "How many nodes report another as failed: none.", f.failureReports),
		row("countkeysinslot", "3.0.0", 3, stale|command.WholeKeyspace, nil, "slot:integer", "How many keys a slot has.", countKeys),
		row("delslots", "3.0.0", -3, change, nil, "slot:integer...", "Refused: the node keeps its slots.", fixed),
		row("delslotsrange", "7.0.0", -4, change, nil, "range={start-slot:integer end-slot:integer}...", "Refused: the node keeps its slots.", fixed),
		row("failover", "3.0.0", -2, change, nil, "[options=(FORCE | TAKEOVER)]", "Refused: there are no replicas.", failover),
		row("flushslots", "3.0.0", 2, change, nil, "", "Refused: the node keeps its slots.", fixed),
		row("forget", "3.0.0", 3, change, nil, "node-id:string", "Refused: there are no other nodes.", f.forget),
		row("getkeysinslot", "3.0.0", 4, stale|command.WholeKeyspace, varying, "slot:integer count:integer", "Some keys of a slot.", getKeys),
		row("info", "3.0.0", 2, stale, varying, "", "How the cluster is.", f.info),
		row("keyslot", "3.0.0", 3, stale, nil, "key:string", "The slot of a key.", keySlot),
		row("links", "7.0.0", 2, stale, varying, "", "The links between nodes: none.", func(c *command.Ctx) { c.Array(0) }),
		row("meet", "3.0.0", -4, change, nil, "ip:string port:integer [cluster-bus-port:integer]", "Refused: the node stays alone.", fixed),
		row("myid", "3.0.0", 2, stale, nil, "", "The node's id.", func(c *command.Ctx) { c.BulkString(f.node) }),
		row("myshardid", "7.2.0", 2, stale, varying, "", "The id of the node's shard.", func(c *command.Ctx) { c.BulkString(f.shard) }),
		row("nodes", "3.0.0", 2, stale, varying, "", "The nodes.", f.nodes),
		row("replicas", "5.0.0", 3, admin, varying, "node-id:string", "The replicas of a master: none.", f.replicas),
		row("replicate", "3.0.0", 3, change, nil, "node-id:string", "Refused: there are no other nodes.", f.replicate),
		row("reset", "3.0.0", -2, admin|command.NoScript, nil, "[reset-type=(HARD | SOFT)]", "Refused: the node keeps its slots.", reset),
		row("saveconfig", "3.0.0", 2, change, nil, "", "Does nothing: the cluster has no state to write to disk.", (*command.Ctx).OK),
		row("set-config-epoch", "3.0.0", 3, change, nil, "config-epoch:integer", "Sets the epoch of a new node.", f.setEpoch),
		row("setslot", "3.0.0", -4, change, nil, "slot:integer subcommand=(IMPORTING importing~node-id:string | MIGRATING migrating~node-id:string | NODE node~node-id:string | STABLE)", "Moves a slot, to the node that has it.", f.setSlot),
		row("shards", "7.0.0", 2, loading, varying, "", "The shards and their slots.", f.shards),
		row("slaves", "3.0.0", 3, admin, varying, "node-id:string", "The replicas of a master: none.", f.replicas),
		row("slots", "3.0.0", 2, loading, varying, "", "The slots and their nodes.", f.slots),
	}
	for _, r := range rows {
		switch r.Name {
		case "slaves":
			r.DeprecatedSince, r.ReplacedBy = "5.0.0", "CLUSTER REPLICAS"
		case "slots":
			r.DeprecatedSince, r.ReplacedBy = "7.0.0", "CLUSTER SHARDS"
		}
	}
	return rows
}
