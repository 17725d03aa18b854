// Package cluster is the family of commands of Redis Cluster. limitkv is no
// cluster; clients ask nevertheless, and get the answer of a Redis that is
// none.
package cluster

import (
	"github.com/limitkv/limitkv/commands/command"
)

// Commands are the rows of the family.
func Commands(*command.Server) []*command.Command {
	own := func(name string, flags command.Flags, summary string) *command.Command {
		return &command.Command{
			Name: name, Arity: 1, Group: command.GroupCluster, Since: "3.0.0", Flags: flags, ACL: []string{"connection"},
			Summary: summary, Complexity: "O(1)", Run: refuse,
		}
	}
	rows := []*command.Command{
		own("asking", command.Fast, "Lets the next command reach a slot that is moving; there are no slots."),
		own("readonly", command.Fast|command.Loading|command.Stale, "Lets a replica answer reads; there are no replicas."),
		own("readwrite", command.Fast|command.Loading|command.Stale, "Ends READONLY."),
	}
	container := &command.Command{
		Name: "cluster", Arity: -2, Group: command.GroupCluster, Since: "3.0.0",
		Summary: "Commands about the cluster, which limitkv is not.", Complexity: "O(1)",
		Sub: []*command.Command{command.HelpRow("5.0.0")},
	}
	for i := range subs {
		s := &subs[i]
		container.Sub = append(container.Sub, &command.Command{
			Name: s.name, Arity: s.arity, Since: s.since, Flags: s.flags, Summary: s.summary, Complexity: "O(1)",
			Tips: s.tips, Syntax: s.syntax, DeprecatedSince: s.deprecated, ReplacedBy: s.replacedBy, Run: refuse,
		})
	}
	return append(rows, container)
}

func refuse(c *command.Ctx) { c.Error("ERR This instance has cluster support disabled") }

const (
	stale   = command.Stale
	loading = command.Loading | command.Stale
	admin   = command.Admin | command.Stale
	change  = command.Admin | command.Stale | command.NoAsyncLoading
)

var varying = []string{"nondeterministic_output"}

var subs = []struct {
	name, since            string
	arity                  int
	flags                  command.Flags
	tips                   []string
	syntax, summary        string
	deprecated, replacedBy string
}{
	{"addslots", "3.0.0", -3, change, nil, "slot:integer...", "Gives this node slots.", "", ""},
	{"addslotsrange", "7.0.0", -4, change, nil, "range={start-slot:integer end-slot:integer}...", "Gives this node ranges of slots.", "", ""},
	{"bumpepoch", "3.0.0", 2, change, varying, "", "Raises the epoch.", "", ""},
	{"count-failure-reports", "3.0.0", 3, admin, varying, "node-id:string", "How many nodes report another as failed.", "", ""},
	{"countkeysinslot", "3.0.0", 3, stale, nil, "slot:integer", "How many keys a slot has.", "", ""},
	{"delslots", "3.0.0", -3, change, nil, "slot:integer...", "Takes slots from this node.", "", ""},
	{"delslotsrange", "7.0.0", -4, change, nil, "range={start-slot:integer end-slot:integer}...", "Takes ranges of slots from this node.", "", ""},
	{"failover", "3.0.0", -2, change, nil, "[options=(FORCE | TAKEOVER)]", "Makes a replica the master.", "", ""},
	{"flushslots", "3.0.0", 2, change, nil, "", "Takes all slots from this node.", "", ""},
	{"forget", "3.0.0", 3, change, nil, "node-id:string", "Forgets a node.", "", ""},
	{"getkeysinslot", "3.0.0", 4, stale, varying, "slot:integer count:integer", "Some keys of a slot.", "", ""},
	{"info", "3.0.0", 2, stale, varying, "", "How the cluster is.", "", ""},
	{"keyslot", "3.0.0", 3, stale, nil, "key:string", "The slot of a key.", "", ""},
	{"links", "7.0.0", 2, stale, varying, "", "The links between nodes.", "", ""},
	{"meet", "3.0.0", -4, change, nil, "ip:string port:integer [cluster-bus-port:integer]", "Makes nodes know each other.", "", ""},
	{"myid", "3.0.0", 2, stale, nil, "", "The node's id.", "", ""},
	{"myshardid", "7.2.0", 2, stale, varying, "", "The id of the node's shard.", "", ""},
	{"nodes", "3.0.0", 2, stale, varying, "", "The nodes.", "", ""},
	{"replicas", "5.0.0", 3, admin, varying, "node-id:string", "The replicas of a master.", "", ""},
	{"replicate", "3.0.0", 3, change, nil, "node-id:string", "Makes this node a replica.", "", ""},
	{"reset", "3.0.0", -2, admin | command.NoScript, nil, "[reset-type=(HARD | SOFT)]", "Makes the node a new one.", "", ""},
	{"saveconfig", "3.0.0", 2, change, nil, "", "Writes the cluster's state to disk.", "", ""},
	{"set-config-epoch", "3.0.0", 3, change, nil, "config-epoch:integer", "Sets the epoch of a new node.", "", ""},
	{"setslot", "3.0.0", -4, change, nil, "slot:integer subcommand=(IMPORTING importing~node-id:string | MIGRATING migrating~node-id:string | NODE node~node-id:string | STABLE)", "Moves a slot.", "", ""},
	{"shards", "7.0.0", 2, loading, varying, "", "The shards and their slots.", "", ""},
	{"slaves", "3.0.0", 3, admin, varying, "node-id:string", "The replicas of a master.", "5.0.0", "CLUSTER REPLICAS"},
	{"slots", "3.0.0", 2, loading, varying, "", "The slots and their nodes.", "7.0.0", "CLUSTER SHARDS"},
}
