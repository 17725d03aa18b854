package pubsub

// Sending messages: PUBLISH, SPUBLISH and keyspace events.

import (
	"strconv"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

func (f *family) publishRow() *command.Command {
	return &command.Command{
		Name: "publish", Arity: 3, Group: command.GroupPubSub, Since: "2.0.0",
		Flags:      command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		ACL:        pubsubACL,
		Summary:    "Sends a message to those who listen to a channel.",
		Complexity: "O(N+M) for N listeners and M patterns",
		Syntax:     "channel:string message:string",
		Channels:   command.Channels{First: 1, Last: 1},
		Run:        func(c *command.Ctx) { c.Int(int64(f.worlds.Of(c.KS).publish(c, c.Args[1], c.Args[2]))) },
	}
}

func (f *family) spublishRow() *command.Command {
	return &command.Command{
		Name: "spublish", Arity: 3, Group: command.GroupPubSub, Since: "7.0.0",
		Flags:      command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
		ACL:        pubsubACL,
		Keys:       []command.KeySpec{command.Key(1, command.NotKey)},
		Summary:    "Sends a message to those who listen to a shard channel.",
		Complexity: "O(N) for N listeners",
		Syntax:     "shardchannel:string message:string",
		Channels:   command.Channels{First: 1, Last: 1},
		Run: func(c *command.Ctx) {
			m := newMessage("smessage", c.Args[1], c.Args[2])
			c.Int(int64(m.send(c, f.worlds.Of(c.KS).shard.listeners(c.Args[1]))))
		},
	}
}

// message is one that is on its way to several sessions.
type message struct {
	kind                   string
	pattern, channel, text []byte
}

// newMessage copies what it is given: the request is gone before it arrives.
func newMessage(kind string, channel, text []byte) *message {
	both := append(append(make([]byte, 0, len(channel)+len(text)), channel...), text...)
	return &message{kind: kind, channel: both[:len(channel):len(channel)], text: both[len(channel):]}
}

func (m *message) write(w command.Replier) {
	if m.pattern != nil {
		w.Push(4)
	} else {
		w.Push(3)
	}
	w.BulkString(m.kind)
	if m.pattern != nil {
		w.Bulk(m.pattern)
	}
	w.Bulk(m.channel)
	w.Bulk(m.text)
}

// send gives the message to sessions and returns how many they are. The one
// that runs the command, if any, has it before the command's reply.
func (m *message) send(c *command.Ctx, list []*command.Session) int {
	n := 0
	for _, s := range list {
		if s.Killed.Load() {
			continue // its connection is about to go
		}
		n++
		if c != nil && s == c.Session && !c.Exec && !c.Script {
			m.write(c.Writer)
			c.Mark = c.Writer.Mark()
			continue
		}
		s.Conn.Post(func() { m.write(s.Conn.Out) })
	}
	return n
}

// publish sends a message to a channel and returns how many got it. c is nil
// where no session sends.
func (world *world) publish(c *command.Ctx, channel, text []byte) (receivers int) {
	var m *message
	if list := world.plain.listeners(channel); len(list) > 0 {
		m = newMessage("message", channel, text)
		receivers = m.send(c, list)
	}
	if world.patterns.len() == 0 {
		return receivers
	}
	if m == nil {
		m = newMessage("message", channel, text)
	}
	world.patterns.each(func(pattern string, list []*command.Session) {
		if command.Match([]byte(pattern), m.channel) {
			p := &message{kind: "pmessage", pattern: []byte(pattern), channel: m.channel, text: m.text}
			receivers += p.send(c, list)
		}
	})
	return receivers
}

// keyspaceEvent publishes an event of a key on the channels that
// notify-keyspace-events asks for. It runs under the key's lock, so the events
// of a key come in the order of its changes.
func (f *family) keyspaceEvent(v *engine.View, db int, _ engine.EventClass, event string, key []byte) {
	mask := engine.EventClass(v.KS.EventMask.Load())
	world := f.worlds.Of(v.KS)
	number := strconv.Itoa(db)
	if mask&engine.EventKeyspace != 0 {
		channel := append([]byte("__keyspace@"+number+"__:"), key...)
		world.publish(nil, channel, []byte(event))
	}
	if mask&engine.EventKeyevent != 0 {
		world.publish(nil, []byte("__keyevent@"+number+"__:"+event), key)
	}
}
