// Package catalog, internal to the server, is the family of COMMAND, which describes the commands in the table.
package catalog

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

type family struct {
	s *server.Server
	// described are the replies to COMMAND DOCS without names, by protocol; nil until somebody has asked for them.
	described [2]atomic.Pointer[[]byte]
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	return []*command.Command{f.commandRow()}
}

func (f *family) commandRow() *command.Command {
	const flags = command.Loading | command.Stale
	acl := []string{"connection"}
	order := []string{"nondeterministic_output_order"}
	return &command.Command{
		Name: "command", Arity: -1, Group: command.GroupServer, Since: "2.8.13",
		Flags:      flags,
		ACL:        acl,
		Summary:    "Describes all commands.",
		Complexity: "O(N) in the number of commands",
		Tips:       order,
		Run:        func(c *command.Ctx) { replyInfo(c, f.s.Table.List()) },
		Sub: []*command.Command{
			{
				Name: "count", Arity: 2, Since: "2.8.13", Flags: flags, ACL: acl,
				Summary:    "How many commands there are.",
				Complexity: "O(1)",
				Run:        func(c *command.Ctx) { c.Int(int64(len(f.s.Table.List()))) },
			},
			{
				Name: "docs", Arity: -2, Since: "7.0.0", Flags: flags, ACL: acl,
				Summary:    "Documents commands: what they do, their arguments, their past.",
				Complexity: "O(N) in the number of commands asked for",
				Tips:       order,
				Syntax:     "[command-name:string...]",
				Run:        f.docs,
			},
			{
				Name: "getkeys", Arity: -3, Since: "2.8.13", Flags: flags, ACL: acl,
				Summary:    "Finds the keys in a command.",
				Complexity: "O(N) in the number of arguments",
				Syntax:     "command:string [arg:string...]",
				Run:        func(c *command.Ctx) { f.keys(c, false) },
			},
			{
				Name: "getkeysandflags", Arity: -3, Since: "7.0.0", Flags: flags, ACL: acl,
				Summary:    "Finds the keys in a command, and what it does with them.",
				Complexity: "O(N) in the number of arguments",
				Syntax:     "command:string [arg:string...]",
				Run:        func(c *command.Ctx) { f.keys(c, true) },
			},
			command.HelpRow("5.0.0", acl...),
			{
				Name: "info", Arity: -2, Since: "2.8.13", Flags: flags, ACL: acl,
				Summary:    "Describes commands as clients need it: arity, flags, keys.",
				Complexity: "O(N) in the number of commands asked for",
				Tips:       order,
				Syntax:     "[command-name:string...]",
				History:    [][2]string{{"7.0.0", "Without names it describes all."}},
				Run:        f.info,
			},
			{
				Name: "list", Arity: -2, Since: "7.0.0", Flags: flags, ACL: acl,
				Summary:    "Names the commands.",
				Complexity: "O(N) in the number of commands",
				Tips:       order,
				Syntax:     "[FILTERBY filterby=(MODULE module-name:string | ACLCAT category:string | PATTERN pattern)]",
				Run:        f.list,
			},
		},
	}
}

func (f *family) info(c *command.Ctx) {
	if len(c.Args) == 2 {
		replyInfo(c, f.s.Table.List())
		return
	}
	list := make([]*command.Command, 0, len(c.Args)-2)
	for _, name := range c.Args[2:] {
		list = append(list, f.s.Table.Named(name))
	}
	replyInfo(c, list)
}

// replyInfo describes commands; nil is one that does not exist.
func replyInfo(c *command.Ctx, list []*command.Command) {
	c.Array(len(list))
	for _, cmd := range list {
		if cmd == nil {
			c.Null()
			continue
		}
		first, last, step := cmd.LegacyRange()
		c.Array(10)
		c.BulkString(cmd.FullName())
		c.Int(int64(cmd.Arity))
		replyFlags(c, cmd.Flags.Names())
		c.Int(int64(first))
		c.Int(int64(last))
		c.Int(int64(step))
		categories := cmd.Categories()
		c.Set(len(categories))
		for _, name := range categories {
			c.Status("@" + name)
		}
		c.Set(len(cmd.Tips))
		for _, tip := range cmd.Tips {
			c.BulkString(tip)
		}
		c.Set(len(cmd.Keys))
		for i := range cmd.Keys {
			replyKeySpec(c, &cmd.Keys[i])
		}
		replySubs(c, cmd)
	}
}

func replySubs(c *command.Ctx, cmd *command.Command) {
	if len(cmd.Sub) == 0 {
		c.Set(0)
		return
	}
	replyInfo(c, cmd.Sub)
}

func replyFlags(c *command.Ctx, names []string) {
	c.Set(len(names))
	for _, name := range names {
		c.Status(name)
	}
}

func replyKeySpec(c *command.Ctx, k *command.KeySpec) {
	if k.Notes != "" {
		c.Map(4)
		c.BulkString("notes")
		c.BulkString(k.Notes)
	} else {
		c.Map(3)
	}
	c.BulkString("flags")
	replyFlags(c, k.Flags.Names())
	c.BulkString("begin_search")
	switch {
	case k.Unknown:
		replySpec(c, "unknown")
	case k.Keyword != "":
		replySpec(c, "keyword", "keyword", k.Keyword, "startfrom", k.StartFrom)
	default:
		replySpec(c, "index", "index", k.Index)
	}
	c.BulkString("find_keys")
	switch {
	case k.Unknown:
		replySpec(c, "unknown")
	case k.Numbered:
		replySpec(c, "keynum", "keynumidx", k.NumAt, "firstkey", k.FirstAt, "keystep", k.Step)
	default:
		replySpec(c, "range", "lastkey", k.Last, "keystep", k.Step, "limit", k.Limit)
	}
}

// replySpec replies the type of a search and its parameters, names and values
// in turn.
func replySpec(c *command.Ctx, kind string, params ...any) {
	c.Map(2)
	c.BulkString("type")
	c.BulkString(kind)
	c.BulkString("spec")
	c.Map(len(params) / 2)
	for _, p := range params {
		switch p := p.(type) {
		case string:
			c.BulkString(p)
		case int:
			c.Int(int64(p))
		}
	}
}

// keys replies the keys among the arguments of a command.
func (f *family) keys(c *command.Ctx, withFlags bool) {
	args := c.Args[2:]
	cmd, known := f.s.Table.Resolve(args)
	switch {
	case cmd == nil || !known:
		c.Error("ERR Invalid command specified")
		return
	case !cmd.HasKeys():
		c.Error("ERR The command has no key arguments")
		return
	case !cmd.Takes(len(args)):
		c.Error("ERR Invalid number of arguments specified for command")
		return
	}
	type found struct {
		pos   int
		flags command.KeyFlags
	}
	var all []found
	ok := cmd.EachKeyFlags(args, func(pos int, flags command.KeyFlags) { all = append(all, found{pos, flags}) })
	if !ok || len(all) == 0 {
		if cmd.Flags&command.NoMandatoryKeys != 0 {
			c.Array(0)
		} else {
			c.Error("ERR Invalid arguments specified for command")
		}
		return
	}
	c.Array(len(all))
	for _, k := range all {
		if withFlags {
			c.Array(2)
		}
		c.Bulk(args[k.pos])
		if withFlags {
			replyFlags(c, k.flags.Names())
		}
	}
}

// list names commands and subcommands, all or those that a filter lets
// through.
func (f *family) list(c *command.Ctx) {
	a := c.Cursor(2)
	keep := func(*command.Command) bool { return true }
	switch {
	case a.Left() == 0:
	case a.Left() == 3 && a.Is("FILTERBY"):
		switch {
		case a.Is("MODULE"):
			keep = func(*command.Command) bool { return false } // there are no modules
		case a.Is("ACLCAT"):
			category := command.Lower(a.Bytes())
			keep = func(cmd *command.Command) bool {
				for _, name := range cmd.Categories() {
					if name == category {
						return true
					}
				}
				return false
			}
		case a.Is("PATTERN"):
			pattern := a.Bytes()
			keep = func(cmd *command.Command) bool {
				return glob.MatchFold(pattern, []byte(cmd.FullName()))
			}
		default:
			a.Syntax()
		}
	default:
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	var names []string
	for _, cmd := range f.s.Table.All() {
		if keep(cmd) {
			names = append(names, cmd.FullName())
		}
	}
	c.Array(len(names))
	for _, name := range names {
		c.BulkString(name)
	}
}
