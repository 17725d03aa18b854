package catalog

// COMMAND DOCS, from which redis-cli makes its help.

import (
	"bytes"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/notation"
)

func (f *family) docs(c *command.Ctx) {
	if len(c.Args) == 2 {
		f.all(c)
		return
	}
	var list []*command.Command
	for _, name := range c.Args[2:] {
		if cmd := f.s.Table.Named(name); cmd != nil {
			list = append(list, cmd)
		}
	}
	replyDocs(c, list)
}

// all describes all commands. The reply is always the same, because the table does not change once it is used, and each
// redis-cli asks for it when it starts. So it is kept.
func (f *family) all(c *command.Ctx) {
	kept := &f.described[0]
	if c.Proto == 3 {
		kept = &f.described[1]
	}
	if reply := kept.Load(); reply != nil {
		c.Raw(*reply)
		return
	}
	from := len(c.Buf)
	replyDocs(c, f.s.Table.List())
	reply := bytes.Clone(c.Buf[from:])
	kept.Store(&reply)
}

func replyDocs(c *command.Ctx, list []*command.Command) {
	c.Map(len(list))
	for _, cmd := range list {
		c.BulkString(cmd.FullName())
		replyDoc(c, cmd)
	}
}

func replyDoc(c *command.Ctx, cmd *command.Command) {
	var docFlags []string
	if cmd.DeprecatedSince != "" {
		docFlags = append(docFlags, "deprecated")
	}
	if cmd.Flags&command.System != 0 {
		docFlags = append(docFlags, "syscmd")
	}
	fields := 1
	for _, there := range []bool{cmd.Summary != "", cmd.Since != "", cmd.Complexity != "", docFlags != nil, cmd.DeprecatedSince != "",
		cmd.ReplacedBy != "", len(cmd.History) > 0, cmd.Syntax != "", len(cmd.Sub) > 0} {
		if there {
			fields++
		}
	}
	c.Map(fields)
	text := func(name, value string) {
		if value != "" {
			c.BulkString(name)
			c.BulkString(value)
		}
	}
	text("summary", cmd.Summary)
	text("since", cmd.Since)
	text("group", string(cmd.Group))
	text("complexity", cmd.Complexity)
	if docFlags != nil {
		c.BulkString("doc_flags")
		replyFlags(c, docFlags)
	}
	text("deprecated_since", cmd.DeprecatedSince)
	text("replaced_by", cmd.ReplacedBy)
	if len(cmd.History) > 0 {
		c.BulkString("history")
		c.Set(len(cmd.History))
		for _, h := range cmd.History {
			c.Array(2)
			c.BulkString(h[0])
			c.BulkString(h[1])
		}
	}
	if cmd.Syntax != "" {
		c.BulkString("arguments")
		replyArgs(c, cmd.Arguments())
	}
	if len(cmd.Sub) > 0 {
		c.BulkString("subcommands")
		replyDocs(c, cmd.Sub)
	}
}

func replyArgs(c *command.Ctx, args []*notation.Arg) {
	c.Array(len(args))
	for _, a := range args {
		flags := a.Flags()
		nested := len(a.Args) > 0
		fields := 3 // name, type, and display_text or arguments
		for _, there := range []bool{a.KeySpec >= 0, a.Token != "" || a.Type == "pure-token", flags != nil} {
			if there {
				fields++
			}
		}
		c.Map(fields)
		c.BulkString("name")
		c.BulkString(a.Name)
		c.BulkString("type")
		c.BulkString(a.Type)
		if !nested {
			c.BulkString("display_text")
			c.BulkString(a.Shown)
		}
		if a.KeySpec >= 0 {
			c.BulkString("key_spec_index")
			c.Int(int64(a.KeySpec))
		}
		if a.Token != "" || a.Type == "pure-token" {
			c.BulkString("token")
			c.BulkString(a.Token)
		}
		if flags != nil {
			c.BulkString("flags")
			replyFlags(c, flags)
		}
		if nested {
			c.BulkString("arguments")
			replyArgs(c, a.Args)
		}
	}
}
