package stream

// XGROUP: consumer groups and their consumers.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

func groupSub(name string, arity int, since, syntax, summary, complexity string, flags command.Flags, key command.KeyFlags, run func(c *command.Ctx)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Since: since,
		Flags:      flags,
		ACL:        streamACL,
		Keys:       []command.KeySpec{command.Key(2, command.RW|key)},
		Summary:    summary,
		Complexity: complexity,
		Syntax:     syntax,
		Run:        run,
	}
}

var xgroupRow = &command.Command{
	Name: "xgroup", Arity: -2, Group: command.GroupStream, Since: "5.0.0",
	Summary:    "Manages the consumer groups of a stream.",
	Complexity: "That of the subcommand",
	Sub: []*command.Command{
		groupSub("create", -5, "5.0.0", "key group:string id-selector=(id:string | new-id=$) [MKSTREAM] [ENTRIESREAD entriesread~entries-read:integer]",
			"Makes a consumer group that has read up to an ID.", "O(log N) for N groups", command.Write|command.DenyOOM, command.Insert, xgroupCreate),
		groupSub("createconsumer", 5, "6.2.0", "key group:string consumer:string",
			"Makes a consumer in a group.", "O(log N) for N consumers", command.Write|command.DenyOOM, command.Insert, xgroupCreateConsumer),
		groupSub("delconsumer", 5, "5.0.0", "key group:string consumer:string",
			"Removes a consumer, and what is pending with it, from a group.", "O(N) for N entries pending with it", command.Write, command.Delete, xgroupDelConsumer),
		groupSub("destroy", 4, "5.0.0", "key group:string",
			"Removes a consumer group.", "O(1); freeing it is left to the garbage collector", command.Write, command.Delete, xgroupDestroy),
		command.HelpRow("5.0.0", "stream"),
		groupSub("setid", -5, "5.0.0", "key group:string id-selector=(id:string | new-id=$) [ENTRIESREAD entriesread~entries-read:integer]",
			"Sets up to which ID a group has read.", "O(1)", command.Write, command.Update, xgroupSetID),
	},
}

// groupOptions are the options of CREATE and SETID.
type groupOptions struct {
	make bool
	read int64
}

// parseGroup reads the options behind the ID. It replies the error and reports
// false if there is one.
func parseGroup(c *command.Ctx, create bool) (o groupOptions, ok bool) {
	o.read = stream.UnknownRead
	a := c.Cursor(5)
	for a.More() {
		switch {
		case create && a.Is("MKSTREAM"):
			o.make = true
		case a.IsWith("ENTRIESREAD", 1):
			if o.read = a.Int(); o.read < 0 && o.read != stream.UnknownRead {
				a.Fail("ERR value for ENTRIESREAD must be positive or -1")
			}
		default:
			a.Fail(command.ErrSubcommandSyntax("XGROUP", c.Args[1]))
		}
	}
	return o, !a.Failed(c)
}

// streamFor finds the stream of a subcommand. It replies the error and reports
// false if there is none, unless it may be missing.
func streamFor(c *command.Ctx, mayMiss bool) (s *stream.Stream, ok bool) {
	s, ok = lookupWrite(c, c.Args[2])
	if ok && s == nil && !mayMiss {
		c.Error("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.")
		return nil, false
	}
	return s, ok
}

// groupFor finds the group of a subcommand, and replies the error if there is
// none: then it is nil.
func groupFor(c *command.Ctx) (*stream.Stream, *stream.Group) {
	s, ok := streamFor(c, false)
	if !ok {
		return nil, nil
	}
	g := s.Group(c.Args[3])
	if g == nil {
		c.Error(noGroupFor(c.Args[2], c.Args[3]))
	}
	return s, g
}

func xgroupCreate(c *command.Ctx) {
	o, ok := parseGroup(c, true)
	if !ok {
		return
	}
	s, ok := streamFor(c, o.make)
	if !ok {
		return
	}
	const argsMax = 8
	if len(c.Args) > argsMax {
		c.Error(command.ErrSubcommandSyntax("XGROUP", c.Args[1]))
		return
	}
	var id stream.ID
	if string(command.Text(c.Args[4])) == "$" {
		if s != nil {
			id = s.LastID()
		}
	} else if id, ok = stream.ParseID(c.Args[4], 0); !ok {
		c.Error(errID)
		return
	}
	key := c.Args[2]
	if s == nil {
		s = &stream.Stream{}
		c.PutObject(key, engine.KindStream, s, 0)
		c.Modified(key)
	}
	if _, ok := s.CreateGroup(c.Args[3], id, o.read); !ok {
		c.Error("BUSYGROUP Consumer Group name already exists")
		return
	}
	c.Altered(key, engine.EventStream, "xgroup-create")
	c.OK()
}

func xgroupSetID(c *command.Ctx) {
	o, ok := parseGroup(c, false)
	if !ok {
		return
	}
	s, g := groupFor(c)
	if g == nil {
		return
	}
	if len(c.Args) != 5 && len(c.Args) != 7 {
		c.Error(command.ErrSubcommandSyntax("XGROUP", c.Args[1]))
		return
	}
	id := s.LastID()
	if string(command.Text(c.Args[4])) != "$" {
		if id, ok = stream.ParseBound(c.Args[4], 0); !ok {
			c.Error(errID)
			return
		}
	}
	g.LastID, g.EntriesRead = id, o.read
	c.Altered(c.Args[2], engine.EventStream, "xgroup-setid")
	c.OK()
}

func xgroupDestroy(c *command.Ctx) {
	s, ok := streamFor(c, false)
	if !ok {
		return
	}
	if !s.DestroyGroup(c.Args[3]) {
		c.Int(0)
		return
	}
	c.Altered(c.Args[2], engine.EventStream, "xgroup-destroy")
	c.Ready(c.Args[2]) // callers that wait for the group get the error
	c.Int(1)
}

func xgroupCreateConsumer(c *command.Ctx) {
	_, g := groupFor(c)
	if g == nil {
		return
	}
	if _, created := g.CreateConsumer(c.Args[4], millis(c)); !created {
		c.Int(0)
		return
	}
	c.Altered(c.Args[2], engine.EventStream, "xgroup-createconsumer")
	c.Int(1)
}

func xgroupDelConsumer(c *command.Ctx) {
	_, g := groupFor(c)
	if g == nil {
		return
	}
	if g.Consumer(c.Args[4]) == nil {
		c.Int(0)
		return
	}
	pending := g.DeleteConsumer(c.Args[4])
	c.Altered(c.Args[2], engine.EventStream, "xgroup-delconsumer")
	c.Int(int64(pending))
}
