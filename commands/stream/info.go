package stream

// XINFO describes a stream, its groups and their consumers.

import (
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

func infoSub(name string, arity int, syntax, summary string, tips []string, history [][2]string, reply func(c *command.Ctx, s *stream.Stream)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Since: "5.0.0",
		Flags:      command.ReadOnly,
		ACL:        streamACL,
		Keys:       []command.KeySpec{command.Key(2, readKey)},
		Summary:    summary,
		Complexity: "O(N) in the size of the reply",
		Tips:       tips,
		Syntax:     syntax,
		History:    history,
		Run: func(c *command.Ctx) {
			s, ok := lookup(c, c.Args[2])
			switch {
			case !ok:
			case s == nil:
				c.Error(command.ErrNoSuchKey)
			default:
				reply(c, s)
			}
		},
	}
}

var xinfoRow = &command.Command{
	Name: "xinfo", Arity: -2, Group: command.GroupStream, Since: "5.0.0",
	Summary:    "Looks at streams.",
	Complexity: "That of the subcommand",
	Sub: []*command.Command{
		infoSub("consumers", 4, "key group:string", "Lists the consumers of a group.", varies,
			[][2]string{{"7.2.0", "inactive, and idle is the time since the last attempt."}}, infoConsumers),
		infoSub("groups", 3, "key", "Lists the consumer groups of a stream.", nil,
			[][2]string{{"7.0.0", "entries-read and lag."}}, infoGroups),
		command.HelpRow("5.0.0", "stream"),
		infoSub("stream", -3, "key [full-block={FULL [COUNT count:integer]}]", "Describes a stream, with FULL down to its entries and pending ones.", nil,
			[][2]string{{"6.0.0", "FULL."}, {"7.0.0", "max-deleted-entry-id, entries-added, recorded-first-entry-id, entries-read, lag."}, {"7.2.0", "active-time; seen-time is that of the last attempt."}},
			infoStream),
	},
}

func infoConsumers(c *command.Ctx, s *stream.Stream) {
	g := s.Group(c.Args[3])
	if g == nil {
		c.Error(noGroupFor(c.Args[2], c.Args[3]))
		return
	}
	now := millis(c)
	c.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		inactive := consumer.ActiveMillis
		if inactive >= 0 {
			inactive = now - inactive
		}
		c.Map(4)
		c.BulkString("name")
		c.BulkString(consumer.Name)
		number(c, "pending", int64(consumer.Pending()))
		number(c, "idle", max(now-consumer.SeenMillis, 0))
		number(c, "inactive", inactive)
	}
}

func number(c *command.Ctx, name string, n int64) {
	c.BulkString(name)
	c.Int(n)
}

func id(c *command.Ctx, name string, id stream.ID) {
	c.BulkString(name)
	replyID(c, id)
}

func infoGroups(c *command.Ctx, s *stream.Stream) {
	c.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		c.Map(6)
		c.BulkString("name")
		c.BulkString(g.Name)
		number(c, "consumers", int64(len(g.Consumers())))
		number(c, "pending", int64(g.Pending()))
		replyProgress(c, s, g)
	}
}

// replyProgress replies how far a group has read.
func replyProgress(c *command.Ctx, s *stream.Stream, g *stream.Group) {
	id(c, "last-delivered-id", g.LastID)
	known := func(name string, n int64, ok bool) {
		c.BulkString(name)
		if ok {
			c.Int(n)
		} else {
			c.Null()
		}
	}
	known("entries-read", g.EntriesRead, g.EntriesRead != stream.UnknownRead)
	lag, ok := s.Lag(g)
	known("lag", lag, ok)
}

// fullCount is how many entries of each kind FULL shows, unless COUNT says.
const fullCount = 10

func infoStream(c *command.Ctx, s *stream.Stream) {
	a := c.Cursor(3)
	full, count := a.More(), int64(fullCount)
	if full {
		wrong := command.ErrSubcommandSyntax("XINFO", c.Args[1])
		if n := a.Left(); n != 1 && n != 3 || !a.Is("FULL") || n == 3 && !a.Is("COUNT") {
			a.Fail(wrong)
		} else if n == 3 {
			if count = a.Int(); count < 0 {
				count = fullCount
			}
		}
	}
	if a.Failed(c) {
		return
	}
	c.Expect(s.Blocks())
	if full {
		c.Map(9)
	} else {
		c.Map(10)
	}
	number(c, "length", int64(s.Len()))
	number(c, "radix-tree-keys", int64(s.Blocks()))
	number(c, "radix-tree-nodes", int64(s.RadixNodes()))
	id(c, "last-generated-id", s.LastID())
	id(c, "max-deleted-entry-id", s.MaxDeletedID())
	number(c, "entries-added", int64(s.EntriesAdded()))
	id(c, "recorded-first-entry-id", s.FirstID())
	if full {
		c.BulkString("entries")
		replyRange(c, s, stream.MinID, stream.MaxID, count, false)
		c.BulkString("groups")
		c.Array(len(s.Groups()))
		for _, g := range s.Groups() {
			replyFullGroup(c, s, g, count)
		}
		return
	}
	number(c, "groups", int64(len(s.Groups())))
	replyEdge(c, s, "first-entry", false)
	replyEdge(c, s, "last-entry", true)
}

// replyEdge replies the first entry, or the last.
func replyEdge(c *command.Ctx, s *stream.Stream, name string, last bool) {
	c.BulkString(name)
	if it := s.Range(stream.MinID, stream.MaxID, last); it.Next() {
		replyEntry(c, &it)
	} else {
		c.Null()
	}
}

func replyFullGroup(c *command.Ctx, s *stream.Stream, g *stream.Group, count int64) {
	expect(c, g.Pending(), count)
	c.Map(7)
	c.BulkString("name")
	c.BulkString(g.Name)
	replyProgress(c, s, g)
	number(c, "pel-count", int64(g.Pending()))
	c.BulkString("pending")
	mark, n := c.Writer.Mark(), int64(0)
	visit := func(withName bool) func(p stream.Pending) bool {
		return func(p stream.Pending) bool {
			if withName {
				c.Array(4)
				replyID(c, p.ID)
				c.BulkString(p.Consumer.Name)
			} else {
				c.Array(3)
				replyID(c, p.ID)
			}
			c.Int(p.DeliveredMillis)
			c.Int(int64(p.Deliveries))
			n++
			return n != count
		}
	}
	g.EachPending(stream.MinID, visit(true))
	c.ArrayFrom(mark, int(n))
	c.BulkString("consumers")
	c.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		c.Map(5)
		c.BulkString("name")
		c.BulkString(consumer.Name)
		number(c, "seen-time", consumer.SeenMillis)
		number(c, "active-time", consumer.ActiveMillis)
		number(c, "pel-count", int64(consumer.Pending()))
		c.BulkString("pending")
		mark, n = c.Writer.Mark(), 0
		g.EachPendingOf(consumer, stream.MinID, visit(false))
		c.ArrayFrom(mark, int(n))
	}
}
