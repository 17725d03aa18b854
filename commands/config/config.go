// Package config, internal to the server, is the family of CONFIG, which shows and changes parameters. It declares the
// parameters that no other family declares.
package config

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
	"github.com/limitkv/limitkv/server/params"
)

type family struct{ s *server.Server }

// Commands are the rows of the family. It must be the last family: it declares the parameters that nobody else has declared.
func Commands(s *server.Server) []*command.Command {
	f := &family{s}
	f.declareParams()
	declarePlain(s.Config)
	return []*command.Command{f.configRow()}
}

func (f *family) configRow() *command.Command {
	const flags = command.Admin | command.NoScript | command.Loading | command.Stale
	everywhere := []string{"request_policy:all_nodes", "response_policy:all_succeeded"}
	return &command.Command{
		Name: "config", Arity: -2, Group: command.GroupServer, Since: "2.0.0",
		Summary:    "Commands about the parameters of the server.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "get", Arity: -3, Since: "2.0.0", Flags: flags,
				Summary:    "The values of the parameters whose names match.",
				Complexity: "O(N) in the number of parameters asked for",
				Syntax:     "parameter:string...",
				History:    [][2]string{{"7.0.0", "Several patterns in one call."}},
				Run:        f.configGet,
			},
			command.HelpRow("5.0.0"),
			{
				Name: "resetstat", Arity: 2, Since: "2.0.0", Flags: flags | command.WholeKeyspace,
				Summary:    "Sets the counters of INFO to zero.",
				Complexity: "O(1)",
				Tips:       everywhere,
				Run:        f.resetStat,
			},
			{
				Name: "rewrite", Arity: 2, Since: "2.8.0", Flags: flags,
				Summary:    "Writes the parameters to the configuration file.",
				Complexity: "O(N) in the number of parameters",
				Tips:       everywhere,
				Run:        f.configRewrite,
			},
			{
				Name: "set", Arity: -4, Since: "2.0.0", Flags: flags,
				Summary:    "Changes parameters, all or none.",
				Complexity: "O(N) in the number of parameters",
				Tips:       everywhere,
				Syntax:     "data={parameter:string value:string}...",
				History:    [][2]string{{"7.0.0", "Several parameters in one call."}},
				Secret:     f.configSecret,
				Run:        f.configSet,
			},
		},
	}
}

func (f *family) configGet(c *command.Ctx) {
	type found struct{ name, value string }
	var all []found
	var seen map[string]bool
	if len(c.Args) > 3 { // one pattern finds no parameter twice
		seen = make(map[string]bool)
	}
	add := func(p *params.Param, name string) {
		if folded := strings.ToLower(name); seen[folded] {
			return
		} else if seen != nil {
			seen[folded] = true
		}
		all = append(all, found{name, p.Get()})
	}
	for _, pattern := range c.Args[2:] {
		if !bytes.ContainsAny(pattern, "[*?") {
			if p := f.s.Config.Find(string(pattern)); p != nil {
				add(p, string(pattern))
			}
			continue
		}
		for _, p := range f.s.Config.All() {
			if !p.Hidden && glob.MatchFold(pattern, []byte(p.Name)) {
				add(p, p.Name)
			}
		}
	}
	c.Map(len(all))
	for _, p := range all {
		c.BulkString(p.name)
		c.BulkString(p.value)
	}
}

func (f *family) configSet(c *command.Ctx) {
	if len(c.Args)%2 != 0 {
		c.Error(command.ErrSyntax)
		return
	}
	var sets []params.Set
	for i := 2; i < len(c.Args); i += 2 {
		sets = append(sets, params.Set{Name: string(c.Args[i]), Value: string(c.Args[i+1])})
	}
	if text := f.s.Config.Change(sets, c.Session.Local()); text != "" {
		c.Error(text)
		return
	}
	c.OK()
}

func (f *family) configRewrite(c *command.Ctx) {
	if f.s.ConfigFile == "" {
		c.Error("ERR The server is running without a config file")
		return
	}
	if err := f.s.Config.Rewrite(f.s.ConfigFile); err != nil {
		f.s.Logf('w', "CONFIG REWRITE failed: %v", err)
		c.Error("ERR Rewriting config file: " + err.Error())
		return
	}
	c.OK()
}

// configSecret tells whether an argument of CONFIG SET is a password.
func (f *family) configSecret(args [][]byte, i int) bool {
	if i < 3 || i%2 == 0 {
		return false
	}
	p := f.s.Config.Find(string(args[i-1]))
	return p != nil && p.Secret
}

func (f *family) resetStat(c *command.Ctx) {
	f.s.ResetStats()
	c.ResetStats()
	c.OK()
}
