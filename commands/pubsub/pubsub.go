// Package pubsub, internal to the server, is the family of channels: plain ones, patterns and those of a shard. The
// subscriptions are in server/pubsub.
package pubsub

import (
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/pubsub"
)

type family struct{ s *server.Server }

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := family{s}
	return []*command.Command{
		f.subscribeRow("subscribe", "2.0.0", "channel:string...", "Listens to channels.", pubsub.Plain),
		f.subscribeRow("psubscribe", "2.0.0", "pattern...", "Listens to channels whose names match patterns.", pubsub.Pattern),
		f.subscribeRow("ssubscribe", "7.0.0", "shardchannel:string...", "Listens to shard channels.", pubsub.Shard),
		f.unsubscribeRow("unsubscribe", "2.0.0", "[channel:string...]", "Stops listening to channels, to all if none is named.", pubsub.Plain),
		f.unsubscribeRow("punsubscribe", "2.0.0", "[pattern...]", "Stops listening to patterns, to all if none is named.", pubsub.Pattern),
		f.unsubscribeRow("sunsubscribe", "7.0.0", "[shardchannel:string...]", "Stops listening to shard channels, to all if none is named.", pubsub.Shard),
		f.publishRow(), f.spublishRow(), f.pubsubRow(),
	}
}

var pubsubACL = []string{"pubsub"}

// words are how replies name joining and leaving.
var words = [pubsub.Kinds][2]string{
	{"subscribe", "unsubscribe"},
	{"psubscribe", "punsubscribe"},
	{"ssubscribe", "sunsubscribe"},
}

const subscribeFlags = command.PubSub | command.Pushes | command.NoScript | command.Loading | command.Stale | command.InSubscribed

func (f family) subscribeRow(name, since, syntax, summary string, k pubsub.Kind) *command.Command {
	c := &command.Command{
		Name: name, Arity: -2, Group: command.GroupPubSub, Since: since,
		Flags:      subscribeFlags,
		ACL:        pubsubACL,
		Summary:    summary,
		Complexity: "O(N) in the number of channels",
		Syntax:     syntax,
		Channels:   command.Channels{First: 1, Last: -1, Pattern: k == pubsub.Pattern},
		Run: func(c *command.Ctx) {
			if k == pubsub.Shard && c.Exec { // the others may, for programs older than this rule
				c.Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
				return
			}
			mine := pubsub.Of(c.Session)
			for _, name := range c.Args[1:] {
				f.s.PubSub.Join(c.Session, mine, k, string(name))
				f.confirm(c, words[k][0], name, mine.Count(k))
			}
		},
	}
	if k == pubsub.Shard {
		c.Keys = []command.KeySpec{command.KeyRange(1, -1, 1, command.NotKey)}
	}
	return c
}

func (f family) unsubscribeRow(name, since, syntax, summary string, k pubsub.Kind) *command.Command {
	c := &command.Command{
		Name: name, Arity: -1, Group: command.GroupPubSub, Since: since,
		Flags:      subscribeFlags,
		ACL:        pubsubACL,
		Summary:    summary,
		Complexity: "O(N) in the number of channels",
		Syntax:     syntax,
		Run: func(c *command.Ctx) {
			mine := pubsub.Of(c.Session)
			names := c.Args[1:]
			if len(names) == 0 {
				for name := range mine[k] {
					names = append(names, []byte(name))
				}
				if len(names) == 0 {
					f.confirm(c, words[k][1], nil, mine.Count(k))
					return
				}
			}
			for _, name := range names {
				f.s.PubSub.Leave(c.Session, mine, k, string(name))
				f.confirm(c, words[k][1], name, mine.Count(k))
			}
		},
	}
	if k == pubsub.Shard {
		c.Keys = []command.KeySpec{command.KeyRange(1, -1, 1, command.NotKey)}
	}
	return c
}

// confirm replies to joining or leaving one channel.
func (f family) confirm(c *command.Ctx, word string, name []byte, count int) {
	c.Push(3)
	c.BulkString(word)
	if name == nil {
		c.Null()
	} else {
		c.Bulk(name)
	}
	c.Int(int64(count))
}
