package pubsub

// PUBLISH and SPUBLISH.

import "github.com/limitkv/limitkv/server/command"

func (f family) publishRow() *command.Command {
	return &command.Command{
		Name: "publish", Arity: 3, Group: command.GroupPubSub, Since: "2.0.0",
		Flags:      command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		ACL:        pubsubACL,
		Summary:    "Sends a message to those who listen to a channel.",
		Complexity: "O(N+M) for N listeners and M patterns",
		Syntax:     "channel:string message:string",
		Channels:   command.Channels{First: 1, Last: 1},
		Run:        func(c *command.Ctx) { f.s.PubSub.Publish(c, c.Args[1], c.Args[2]) },
	}
}

func (f family) spublishRow() *command.Command {
	return &command.Command{
		Name: "spublish", Arity: 3, Group: command.GroupPubSub, Since: "7.0.0",
		Flags:      command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		ACL:        pubsubACL,
		Keys:       []command.KeySpec{command.Key(1, command.NotKey)},
		Summary:    "Sends a message to those who listen to a shard channel.",
		Complexity: "O(N) for N listeners",
		Syntax:     "shardchannel:string message:string",
		Channels:   command.Channels{First: 1, Last: 1},
		Run:        func(c *command.Ctx) { f.s.PubSub.PublishShard(c, c.Args[1], c.Args[2]) },
	}
}
