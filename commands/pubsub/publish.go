package pubsub

// Sending messages: PUBLISH, SPUBLISH and keyspace events.

import (
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
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
		Run: func(c *command.Ctx) {
			d := delivery{c: c, v: &c.View}
			d.publish(f.s.Server, f.worlds.Of(c.KS), c.Args[1], c.Args[2])
			f.replicate(c)
			d.reply()
		},
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
			d := delivery{c: c, v: &c.View}
			d.send(f.s.Server, newMessage("smessage", c.Args[1], c.Args[2]), f.worlds.Of(c.KS).shard.listeners(c.Args[1]))
			f.replicate(c)
			d.reply()
		},
	}
}

// replicate has the message sent on by replicas. In a cluster nodes send it to each other.
func (f *family) replicate(c *command.Ctx) {
	if !f.s.Cluster {
		c.ReplicaEffect()
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

// delivery is what becomes of a message.
type delivery struct {
	c         *command.Ctx // nil where no session sends
	v         *engine.View // of the transaction that sends
	receivers int
	own       []*message // for the session that sends
}

// send gives a message to sessions. That which sends it has it after its reply.
func (d *delivery) send(s *command.Server, m *message, list []*command.Session) {
	alone := d.c != nil && !d.c.Exec && !d.c.Script
	gated := d.v.KS.Journal.Holds()
	var others []*command.Session
	for _, to := range list {
		if to.Killed.Load() {
			continue // its connection is about to go
		}
		d.receivers++
		switch {
		case alone && to == d.c.Session:
			d.own = append(d.own, m)
		case gated:
			others = append(others, to)
		default:
			to.Push(func(w *resp.Writer) { m.write(w) })
		}
	}
	if len(others) == 0 {
		return
	}
	// The message may tell of what its transaction changes, or its session changed before: it leaves when that is safe.
	tell := func(at journal.LSN) {
		s.Keyspace.Journal.Tell(at, func() {
			for _, to := range others {
				to.Push(func(w *resp.Writer) { m.write(w) })
			}
		})
	}
	var wrote journal.LSN
	if d.c != nil {
		wrote = d.c.Session.Wrote
	}
	if alone {
		tell(wrote)
	} else {
		d.v.AtCommit(func(at journal.LSN) { tell(max(at, wrote)) })
	}
}

// reply tells the session that sent how many got the message, and gives it its
// own.
func (d *delivery) reply() {
	d.c.Int(int64(d.receivers))
	for _, m := range d.own {
		m.write(d.c.Writer)
	}
}

// publish sends a message to a channel, and to the patterns that match it.
func (d *delivery) publish(s *command.Server, world *world, channel, text []byte) {
	var m *message
	if list := world.plain.listeners(channel); len(list) > 0 {
		m = newMessage("message", channel, text)
		d.send(s, m, list)
	}
	if world.patterns.len() == 0 {
		return
	}
	if m == nil {
		m = newMessage("message", channel, text)
	}
	world.patterns.each(func(pattern string, list []*command.Session) {
		if glob.Match([]byte(pattern), m.channel) {
			p := &message{kind: "pmessage", pattern: []byte(pattern), channel: m.channel, text: m.text}
			d.send(s, p, list)
		}
	})
}

// keyspaceEvent publishes an event of a key on the channels that
// notify-keyspace-events asks for. It runs under the key's lock, so the events
// of a key come in the order of its changes.
func (f *family) keyspaceEvent(v *engine.View, db int, _ engine.EventClass, event string, key []byte) {
	mask := engine.EventClass(v.KS.EventMask.Load())
	world := f.worlds.Of(v.KS)
	number := strconv.Itoa(db)
	d := delivery{v: v}
	if mask&engine.EventKeyspace != 0 {
		channel := append([]byte("__keyspace@"+number+"__:"), key...)
		d.publish(f.s.Server, world, channel, []byte(event))
	}
	if mask&engine.EventKeyevent != 0 {
		d.publish(f.s.Server, world, []byte("__keyevent@"+number+"__:"+event), key)
	}
}
