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

// Publish sends the command's message to a channel and to the patterns that match it, and replies the number of receivers.
func (h *Hub) Publish(c *command.Ctx, channel, text []byte) {
	d := delivery{c: c, v: &c.View}
	d.publish(h.s, h.worlds.Of(c.KS), channel, text)
	h.replicate(c)
	d.reply()
}

// PublishShard is Publish for a shard channel.
func (h *Hub) PublishShard(c *command.Ctx, channel, text []byte) {
	d := delivery{c: c, v: &c.View}
	d.send(h.s, newMessage("smessage", channel, text), h.worlds.Of(c.KS).Shard.Listeners(channel))
	h.replicate(c)
	d.reply()
}

// replicate makes replicas forward the command's message. In a cluster nodes send it to each other.
func (h *Hub) replicate(c *command.Ctx) {
	if !h.s.Cluster {
		c.ReplicaEffect()
	}
}

// message is a message to one or several sessions.
type message struct {
	kind                   string
	pattern, channel, text []byte
}

// newMessage copies channel and text, since the request's buffers are reused before the message is sent.
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

// delivery is the sending of one message.
type delivery struct {
	c         *command.Ctx // nil for a keyspace event
	v         *engine.View // of the sending transaction
	receivers int
	own       []*message // for the sending session itself
}

// send sends a message to sessions. The sending session itself gets it after its reply.
func (d *delivery) send(s *command.Server, m *message, list []*command.Session) {
	alone := d.c != nil && !d.c.Exec && !d.c.Script
	gated := d.v.KS.Journal.Holds()
	var others []*command.Session
	for _, to := range list {
		if to.Killed.Load() {
			continue // its connection is about to be closed
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
	// The message may show changes of its transaction, or earlier ones of its session. It is sent once those are confirmed.
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

// reply replies the number of receivers, and then sends the session its own messages.
func (d *delivery) reply() {
	d.c.Int(int64(d.receivers))
	for _, m := range d.own {
		m.write(d.c.Writer)
	}
}

// publish sends a message to a channel, and to the patterns that match it.
func (d *delivery) publish(s *command.Server, world *World, channel, text []byte) {
	var m *message
	if list := world.Plain.Listeners(channel); len(list) > 0 {
		m = newMessage("message", channel, text)
		d.send(s, m, list)
	}
	if world.Patterns.Len() == 0 {
		return
	}
	if m == nil {
		m = newMessage("message", channel, text)
	}
	world.Patterns.Each(func(pattern string, list []*command.Session) {
		if glob.Match([]byte(pattern), m.channel) {
			p := &message{kind: "pmessage", pattern: []byte(pattern), channel: m.channel, text: m.text}
			d.send(s, p, list)
		}
	})
}

// keyspaceEvent publishes an event of a key on the channels that notify-keyspace-events enables. It runs under the key's lock,
// so the events of a key have the order of its changes.
func (h *Hub) keyspaceEvent(v *engine.View, db int, _ engine.EventClass, event string, key []byte) {
	mask := engine.EventClass(v.KS.EventMask.Load())
	world := h.worlds.Of(v.KS)
	number := strconv.Itoa(db)
	d := delivery{v: v}
	if mask&engine.EventKeyspace != 0 {
		channel := append([]byte("__keyspace@"+number+"__:"), key...)
		d.publish(h.s, world, channel, []byte(event))
	}
	if mask&engine.EventKeyevent != 0 {
		d.publish(h.s, world, []byte("__keyevent@"+number+"__:"+event), key)
	}
}
