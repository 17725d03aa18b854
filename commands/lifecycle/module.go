package lifecycle

// Modules, which limitkv does not load.

import "github.com/limitkv/limitkv/server/command"

func moduleRow() *command.Command {
	const flags = command.Admin | command.NoScript
	refuse := func(c *command.Ctx) { c.Error("ERR limitkv loads no modules") }
	return &command.Command{
		Name: "module", Arity: -2, Group: command.GroupServer, Since: "4.0.0",
		Summary:    "Commands about modules, of which there are none.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			command.HelpRow("5.0.0"),
			{
				Name: "list", Arity: 2, Since: "4.0.0", Flags: flags,
				Summary:    "The modules: none.",
				Complexity: "O(1)",
				Tips:       []string{"nondeterministic_output_order"},
				Run:        func(c *command.Ctx) { c.Array(0) },
			},
			{
				Name: "load", Arity: -3, Since: "4.0.0", Flags: flags | command.NoAsyncLoading,
				Summary:    "Refused.",
				Complexity: "O(1)",
				Syntax:     "path:string [arg:string...]",
				Run:        refuse,
			},
			{
				Name: "loadex", Arity: -3, Since: "7.0.0", Flags: flags | command.NoAsyncLoading,
				Summary:    "Refused.",
				Complexity: "O(1)",
				Syntax:     "path:string [CONFIG configs={name:string value:string}...+] [ARGS args:string...]",
				Run:        refuse,
			},
			{
				Name: "unload", Arity: 3, Since: "4.0.0", Flags: flags | command.NoAsyncLoading,
				Summary:    "Refused.",
				Complexity: "O(1)",
				Syntax:     "name:string",
				Run:        refuse,
			},
		},
	}
}
