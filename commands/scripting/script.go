package scripting

// SCRIPT and its subcommands.

import (
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) scriptRow() *command.Command {
	acl := []string{"scripting"}
	return &command.Command{
		Name: "script", Arity: -2, Group: command.GroupScripting, Since: "2.6.0",
		Summary:    "Manages the cache of scripts.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "load", Arity: 3, Since: "2.6.0", Flags: command.NoScript | command.Stale, ACL: acl,
				Summary:    "Compiles a script and keeps it, without running it.",
				Complexity: "O(N) in the length of the script",
				Tips:       []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
				Syntax:     "script:string",
				Prepare:    func(c *command.Ctx) bool { return f.prepareScript(c, c.Args[2]) },
				Run:        f.load,
			},
			{
				Name: "exists", Arity: -3, Since: "2.6.0", Flags: command.NoScript, ACL: acl,
				Summary:    "Tells which scripts are cached.",
				Complexity: "O(N) in the number of scripts asked for",
				Tips:       []string{"request_policy:all_shards", "response_policy:agg_logical_and"},
				Syntax:     "sha1:string...",
				Run:        f.exists,
			},
			{
				Name: "flush", Arity: -2, Since: "2.6.0", Flags: command.NoScript, ACL: acl,
				Summary:    "Forgets all cached scripts.",
				Complexity: "O(N) in the number of cached scripts",
				Tips:       []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
				Syntax:     "[flush-type=(ASYNC | SYNC)]",
				Run:        f.flush,
			},
			{
				Name: "kill", Arity: 2, Since: "2.6.0", Flags: command.NoScript | command.AllowBusy, ACL: acl,
				Summary:    "Stops a script that runs and has not written yet.",
				Complexity: "O(1)",
				Tips:       []string{"request_policy:all_shards", "response_policy:one_succeeded"},
				Run:        func(c *command.Ctx) { f.kill(c, false) },
			},
			{
				Name: "debug", Arity: 3, Since: "3.2.0", Flags: command.NoScript, ACL: acl,
				Summary:    "There is no debugger: EVAL is refused after YES or SYNC.",
				Complexity: "O(1)",
				Syntax:     "mode=(YES | SYNC | NO)",
				Run:        f.debug,
			},
			{
				Name: "show", Arity: 3, Since: "8.0.0", Flags: command.NoScript, ACL: acl,
				Summary:    "Returns the text of a cached script.",
				Complexity: "O(1)",
				Syntax:     "sha1:string",
				Run:        f.show,
			},
			{
				Name: "info", Arity: 3, Since: "8.0.0", Flags: command.NoScript, ACL: acl,
				Summary:    "Returns what analysis found of a cached script, and how often and how long it ran.",
				Complexity: "O(1)",
				Syntax:     "sha1:string",
				Run:        f.info,
			},
			command.HelpRow("5.0.0", acl...),
		},
	}
}

func (f *family) load(c *command.Ctx) {
	if err, failed := c.Prepared.(error); failed {
		c.Error("ERR " + err.Error())
		return
	}
	s, err := f.cache.load(&f.worker(c).scripts, c.Args[2])
	if err != nil {
		c.Error("ERR " + err.Error())
		return
	}
	c.BulkString(s.SHA)
}

func (f *family) exists(c *command.Ctx) {
	l := &f.worker(c).scripts
	c.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		if f.cache.find(l, sha) != nil {
			c.Int(1)
		} else {
			c.Int(0)
		}
	}
}

func (f *family) flush(c *command.Ctx) {
	if len(c.Args) > 3 || len(c.Args) == 3 && !command.EqualFold(c.Args[2], "ASYNC") && !command.EqualFold(c.Args[2], "SYNC") {
		c.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	f.cache.flush()
	c.OK()
}

func (f *family) debug(c *command.Ctx) {
	switch {
	case c.Exec:
		c.Error("ERR SCRIPT DEBUG must be called outside a pipeline")
	case command.EqualFold(c.Args[2], "NO"):
		c.Session.Debugging = false
		c.OK()
	case command.EqualFold(c.Args[2], "YES"), command.EqualFold(c.Args[2], "SYNC"):
		c.Session.Debugging = true
		c.OK()
	default:
		c.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
}

// refuseDebugging answers EVAL after SCRIPT DEBUG YES. There is no debugger. An error at SCRIPT DEBUG would not help:
// redis-cli --ldb ignores that reply, and would run the script as if it were debugged. So the session begins and ends at
// once, as in Redis when a script does not compile: it gets the end of the session and the error, and the connection closes.
func refuseDebugging(c *command.Ctx, bySHA bool) {
	if bySHA {
		c.Error("ERR Please use EVAL instead of EVALSHA for debugging")
		return
	}
	c.Error("ERR limitkv has no Lua debugger: run the script without it")
	if c.Exec {
		return
	}
	failure := string(c.Buf[c.Mark:])
	c.Cut(c.Mark)
	c.Array(1)
	c.Status("<endsession>")
	c.Raw([]byte(failure))
	c.Session.Closing = true
}

// find finds the script of SHOW and INFO.
func (f *family) find(c *command.Ctx) *script {
	s := f.cache.find(&f.worker(c).scripts, c.Args[2])
	if s == nil {
		c.Error(command.ErrNoScript)
	}
	return s
}

func (f *family) show(c *command.Ctx) {
	if s := f.find(c); s != nil {
		c.BulkString(s.Body)
	}
}

func (f *family) info(c *command.Ctx) {
	s := f.find(c)
	if s == nil {
		return
	}
	v := s.proven(f.finder)
	runs, micros, longest, _ := s.total()
	c.Map(6)
	c.BulkString("sha1")
	c.BulkString(s.SHA)
	c.BulkString("keys-proven")
	c.Bool(v.KeysProven)
	c.BulkString("keys-line")
	c.Int(int64(v.KeysLine))
	c.BulkString("keys-reason")
	c.BulkString(v.KeysReason)
	c.BulkString("runs")
	c.Int(runs)
	c.BulkString("usec")
	c.Map(2)
	c.BulkString("total")
	c.Int(micros)
	c.BulkString("longest")
	c.Int(longest)
}
