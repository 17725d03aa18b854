package lifecycle

// Replication, which limitkv does not do: what clients ask to find that out,
// and refusals of the rest. And modules, which it does not load.

import (
	"math"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/commands/command"
)

// declareReplicas declares the parameters by which writes are refused as there are too few replicas.
func (f *family) declareReplicas() {
	c := f.s.Config
	replicas := c.Int("min-replicas-to-write", 0, 0, math.MaxInt32, "how many replicas a write must reach; as there are none, any but 0 refuses writes")
	lag := c.Int("min-replicas-max-lag", 10, 0, math.MaxInt32, "seconds that such a replica may be behind; 0 turns min-replicas-to-write off")
	c.Alias("min-replicas-to-write", "min-slaves-to-write")
	c.Alias("min-replicas-max-lag", "min-slaves-max-lag")
	c.OnChange(func() { f.s.TooFewReplicas.Store(replicas.Load() > 0 && lag.Load() > 0) }, "min-replicas-to-write", "min-replicas-max-lag")
}

func (f *family) infoReplication(w *command.InfoWriter) {
	w.Section("Replication")
	w.Line("role", "master")
	w.Line("connected_slaves", 0)
	w.Line("master_failover_state", "no-failover")
	id := f.s.RunID
	if other := f.s.ReplID.Load(); other != nil {
		id = *other
	}
	w.Line("master_replid", id)
	w.Line("master_replid2", strings.Repeat("0", 40))
	w.Line("master_repl_offset", 0)
	w.Line("second_repl_offset", -1)
	w.Line("repl_backlog_active", 0)
	w.Line("repl_backlog_size", f.s.Config.Value("repl-backlog-size"))
	w.Line("repl_backlog_first_byte_offset", 0)
	w.Line("repl_backlog_histlen", 0)
}

func (f *family) replicationRows() []*command.Command {
	refuse := func(c *command.Ctx) { c.Error("ERR " + command.NoReplication) }
	const internal = command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript
	follow := func(name, since string) *command.Command {
		return &command.Command{
			Name: name, Arity: 3, Group: command.GroupServer, Since: since,
			Flags:      command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale,
			Summary:    "NO ONE is what the server is; another server to follow is refused.",
			Complexity: "O(1)",
			Syntax:     "args=(host-port={host:string port:integer} | no-one={NO ONE})",
			Run:        replicaOf,
		}
	}
	slaveof := follow("slaveof", "1.0.0")
	slaveof.DeprecatedSince, slaveof.ReplacedBy = "5.0.0", "REPLICAOF"
	return []*command.Command{
		{
			Name: "role", Arity: 1, Group: command.GroupServer, Since: "2.8.12",
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast,
			ACL:        []string{"admin", "dangerous"},
			Summary:    "The server's part in replication: a master without replicas.",
			Complexity: "O(1)",
			Run: func(c *command.Ctx) {
				c.Array(3)
				c.BulkString("master")
				c.Int(0)
				c.Array(0)
			},
		},
		follow("replicaof", "5.0.0"),
		slaveof,
		{
			Name: "failover", Arity: -1, Group: command.GroupServer, Since: "6.2.0",
			Flags:      command.Admin | command.NoScript | command.Stale,
			Summary:    "Refused: there are no replicas.",
			Complexity: "O(1)",
			Syntax:     "[TO target={host:string port:integer [FORCE]}] [ABORT] [TIMEOUT milliseconds:integer]",
			Run: func(c *command.Ctx) {
				a := c.Cursor(1)
				if a.Left() == 1 && a.Is("ABORT") {
					c.Error("ERR No failover in progress.")
					return
				}
				c.Error("ERR FAILOVER requires connected replicas.")
			},
		},
		{
			Name: "replconf", Arity: -1, Group: command.GroupServer, Since: "3.0.0",
			Flags:      command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy | command.System,
			Summary:    "Tells what SYNC is to reply; what replicas say is refused.",
			Complexity: "O(1)",
			Run:        f.replconf,
		},
		{
			Name: "psync", Arity: -3, Group: command.GroupServer, Since: "2.8.0", Flags: internal,
			Summary: "Refused: for replicas.",
			Syntax:  "replicationid:string offset:integer",
			Run:     refuse,
		},
		{
			Name: "sync", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: internal | command.WholeKeyspace,
			Summary: "Replies all data as a file, and closes the connection; refused for replicas.",
			Run:     f.sync,
		},
	}
}

func replicaOf(c *command.Ctx) {
	a := c.Cursor(1)
	if a.Is("NO") && a.Is("ONE") {
		c.OK()
		return
	}
	if port, err := strconv.Atoi(string(c.Args[2])); err != nil || port < 0 || port > 65535 {
		c.Error("ERR Invalid master port")
		return
	}
	c.Error("ERR " + command.NoReplication)
}

func moduleRow() *command.Command {
	const flags = command.Admin | command.NoScript
	refuse := func(c *command.Ctx) { c.Error("ERR limitkv loads no modules") }
	return &command.Command{
		Name: "module", Arity: -2, Group: command.GroupServer, Since: "4.0.0",
		Summary:    "Commands about modules, of which there are none.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			command.HelpRow("5.0.0"),
			{
				Name: "list", Arity: 2, Since: "4.0.0", Flags: flags,
				Summary:    "The modules: none.",
				Complexity: "O(1)",
				Tips:       []string{"nondeterministic_output_order"},
				Run:        func(c *command.Ctx) { c.Array(0) },
			},
			{
				Name: "load", Arity: -3, Since: "4.0.0", Flags: flags | command.NoAsyncLoading,
				Summary:    "Refused.",
				Complexity: "O(1)",
				Syntax:     "path:string [arg:string...]",
				Run:        refuse,
			},
			{
				Name: "loadex", Arity: -3, Since: "7.0.0", Flags: flags | command.NoAsyncLoading,
				Summary:    "Refused.",
				Complexity: "O(1)",
				Syntax:     "path:string [CONFIG configs={name:string value:string}...+] [ARGS args:string...]",
				Run:        refuse,
			},
			{
				Name: "unload", Arity: 3, Since: "4.0.0", Flags: flags | command.NoAsyncLoading,
				Summary:    "Refused.",
				Complexity: "O(1)",
				Syntax:     "name:string",
				Run:        refuse,
			},
		},
	}
}
