package acl

// The rows of ACL's subcommands.

import "github.com/limitkv/limitkv/server/command"

func (f family) rows() []*command.Command {
	const (
		open  = command.NoScript | command.Loading | command.Stale
		admin = open | command.Admin
	)
	everywhere := []string{"request_policy:all_nodes", "response_policy:all_succeeded"}
	fromUser := func(_ [][]byte, i int) bool { return i >= 2 }
	return []*command.Command{{
		Name: "acl", Arity: -2, Group: command.GroupServer, Since: "6.0.0",
		Summary:    "Manages users and what they may do.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "cat", Arity: -2, Since: "6.0.0", Flags: open,
				Summary:    "Lists the categories, or the commands of one.",
				Complexity: "O(1), the table of commands being what it is",
				Syntax:     "[category:string]",
				Run:        cat,
			},
			{
				Name: "deluser", Arity: -3, Since: "6.0.0", Flags: admin,
				Summary:    "Removes users and closes their connections.",
				Complexity: "O(N) in the number of connections",
				Tips:       everywhere,
				Syntax:     "username:string...",
				Secret:     fromUser,
				Run:        f.delUser,
			},
			{
				Name: "dryrun", Arity: -4, Since: "7.0.0", Flags: admin,
				Summary:    "Tells whether a user may run a command, without running it.",
				Complexity: "O(1)",
				Syntax:     "username:string command:string [arg:string...]",
				Run:        f.dryRun,
			},
			{
				Name: "genpass", Arity: -2, Since: "6.0.0", Flags: open,
				Summary:    "Makes up a password that cannot be guessed.",
				Complexity: "O(1)",
				Syntax:     "[bits:integer]",
				Run:        genPass,
			},
			{
				Name: "getuser", Arity: 3, Since: "6.0.0", Flags: admin,
				Summary:    "Describes a user.",
				Complexity: "O(N) in the number of the user's rules",
				Syntax:     "username:string",
				History: [][2]string{
					{"6.2.0", "Shows channels."},
					{"7.0.0", "Shows selectors; keys and channels are shown as rules."},
				},
				Secret: fromUser,
				Run:    f.getUser,
			},
			command.HelpRow("6.0.0"),
			{
				Name: "list", Arity: 2, Since: "6.0.0", Flags: admin,
				Summary:    "Shows all users as lines of an ACL file.",
				Complexity: "O(N) in the number of users",
				Run:        func(c *command.Ctx) { texts(c, f.users.Lines()) },
			},
			{
				Name: "load", Arity: 2, Since: "6.0.0", Flags: admin,
				Summary:    "Reads the ACL file again.",
				Complexity: "O(N) in the number of users",
				Run:        func(c *command.Ctx) { done(c, f.users.Load(c)) },
			},
			{
				Name: "log", Arity: -2, Since: "6.0.0", Flags: admin,
				Summary:    "Shows what users were refused.",
				Complexity: "O(N) in the number of entries shown",
				Syntax:     "[operation=(count:integer | RESET)]",
				History:    [][2]string{{"7.2.0", "Entries have a number and say when they were made and changed."}},
				Run:        f.log,
			},
			{
				Name: "save", Arity: 2, Since: "6.0.0", Flags: admin,
				Summary:    "Writes the users to the ACL file.",
				Complexity: "O(N) in the number of users",
				Tips:       everywhere,
				Run:        func(c *command.Ctx) { done(c, f.users.Save()) },
			},
			{
				Name: "setuser", Arity: -3, Since: "6.0.0", Flags: admin,
				Summary:    "Makes a user, or changes its rules.",
				Complexity: "O(N) in the number of rules",
				Tips:       everywhere,
				Syntax:     "username:string [rule:string...]",
				History: [][2]string{
					{"6.2.0", "Rules for channels."},
					{"7.0.0", "Selectors, and reading and writing of keys apart."},
				},
				Secret: fromUser,
				Run:    f.setUser,
			},
			{
				Name: "users", Arity: 2, Since: "6.0.0", Flags: admin,
				Summary:    "Lists the names of the users.",
				Complexity: "O(N) in the number of users",
				Run:        func(c *command.Ctx) { texts(c, f.users.Names()) },
			},
			{
				Name: "whoami", Arity: 2, Since: "6.0.0", Flags: open,
				Summary:    "Tells which user the connection is.",
				Complexity: "O(1)",
				Run: func(c *command.Ctx) {
					if u := c.Session.User(); u != nil {
						c.BulkString(u.Name)
					} else {
						c.Null()
					}
				},
			},
		},
	}}
}
