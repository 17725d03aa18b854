package pubsub

// PUBSUB: looking at channels.

import (
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
	"github.com/limitkv/limitkv/server/pubsub"
)

func (f family) pubsubRow() *command.Command {
	const flags = command.PubSub | command.Loading | command.Stale
	return &command.Command{
		Name: "pubsub", Arity: -2, Group: command.GroupPubSub, Since: "2.8.0",
		Summary:    "Looks at channels and those who listen.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "channels", Arity: -2, Since: "2.8.0", Flags: flags, ACL: pubsubACL,
				Summary:    "Returns the channels that somebody listens to.",
				Complexity: "O(N) in the number of channels",
				Syntax:     "[pattern]",
				Run:        func(c *command.Ctx) { channels(c, &f.s.PubSub.In(c).Plain) },
			},
			{
				Name: "numpat", Arity: 2, Since: "2.8.0", Flags: flags, ACL: pubsubACL,
				Summary:    "Counts the patterns that somebody listens to.",
				Complexity: "O(1)",
				Run:        func(c *command.Ctx) { c.Int(int64(f.s.PubSub.In(c).Patterns.Len())) },
			},
			{
				Name: "numsub", Arity: -2, Since: "2.8.0", Flags: flags, ACL: pubsubACL,
				Summary:    "Counts those who listen to channels.",
				Complexity: "O(N) in the number of channels asked for",
				Syntax:     "[channel:string...]",
				Run:        func(c *command.Ctx) { numsub(c, &f.s.PubSub.In(c).Plain) },
			},
			{
				Name: "shardchannels", Arity: -2, Since: "7.0.0", Flags: flags, ACL: pubsubACL,
				Summary:    "Returns the shard channels that somebody listens to.",
				Complexity: "O(N) in the number of shard channels",
				Syntax:     "[pattern]",
				Run:        func(c *command.Ctx) { channels(c, &f.s.PubSub.In(c).Shard) },
			},
			{
				Name: "shardnumsub", Arity: -2, Since: "7.0.0", Flags: flags, ACL: pubsubACL,
				Summary:    "Counts those who listen to shard channels.",
				Complexity: "O(N) in the number of shard channels asked for",
				Syntax:     "[shardchannel:string...]",
				Run:        func(c *command.Ctx) { numsub(c, &f.s.PubSub.In(c).Shard) },
			},
			command.HelpRow("6.2.0"),
		},
	}
}

func channels(c *command.Ctx, r *pubsub.Registry) {
	if len(c.Args) > 3 {
		c.Error(command.ErrSubcommandSyntax("PUBSUB", c.Args[1]))
		return
	}
	var found []string
	r.Each(func(name string, _ []*command.Session) {
		if len(c.Args) < 3 || glob.Match(c.Args[2], []byte(name)) {
			found = append(found, name)
		}
	})
	c.Array(len(found))
	for _, name := range found {
		c.BulkString(name)
	}
}

func numsub(c *command.Ctx, r *pubsub.Registry) {
	c.Array(2 * (len(c.Args) - 2))
	for _, name := range c.Args[2:] {
		c.Bulk(name)
		c.Int(int64(len(r.Listeners(name))))
	}
}
