package latency

// SLOWLOG: the commands that took long, the latest first.

import (
	"github.com/limitkv/limitkv/server/command"
)

func (f family) slowlogRow() *command.Command {
	const flags = command.Admin | command.Loading | command.Stale
	return &command.Command{
		Name: "slowlog", Arity: -2, Group: command.GroupServer, Since: "2.2.12",
		Summary:    "Commands about the log of slow commands.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "get", Arity: -2, Since: "2.2.12", Flags: flags,
				Summary:    "The latest entries of the slow log.",
				Complexity: "O(N) in the number of entries",
				Tips:       []string{"request_policy:all_nodes", "nondeterministic_output"},
				Syntax:     "[count:integer]",
				History:    [][2]string{{"4.0.0", "Entries tell the client's address and name."}},
				Run:        f.slowlogGet,
			},
			command.HelpRow("6.2.0"),
			{
				Name: "len", Arity: 2, Since: "2.2.12", Flags: flags,
				Summary:    "How many entries the slow log has.",
				Complexity: "O(1)",
				Tips:       []string{"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
				Run:        func(c *command.Ctx) { c.Int(int64(f.s.Latency.SlowLen())) },
			},
			{
				Name: "reset", Arity: 2, Since: "2.2.12", Flags: flags,
				Summary:    "Empties the slow log.",
				Complexity: "O(N) in the number of entries",
				Tips:       []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
				Run:        func(c *command.Ctx) { f.s.Latency.ResetSlow(); c.OK() },
			},
		},
	}
}

func (f family) slowlogGet(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Error(command.ErrSubcommandSyntax("SLOWLOG", c.Args[1]))
		return
	}
	count := int64(10)
	if len(c.Args) == 3 {
		const text = "ERR count should be greater than or equal to -1"
		a := c.Cursor(2)
		if count = a.IntOr(text); count < -1 {
			a.Fail(text)
		}
		if a.Failed(c) {
			return
		}
	}
	entries := f.s.Latency.Slow(count)
	c.Array(len(entries))
	for _, e := range entries {
		c.Array(6)
		c.Int(e.ID)
		c.Int(e.AtSeconds)
		c.Int(e.Micros)
		c.Array(len(e.Args))
		for _, a := range e.Args {
			c.BulkString(a)
		}
		c.BulkString(e.Addr)
		c.BulkString(e.Name)
	}
}
