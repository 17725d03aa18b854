package command

// The HELP subcommands. Their text is made from the rows, so the two always agree.

import (
	"slices"
	"strings"
)

// HelpRow returns the HELP subcommand of a container, with the ACL categories of its other subcommands.
func HelpRow(since string, acl ...string) *Command {
	return &Command{
		Name: "help", Arity: 2, Since: since, Flags: Loading | Stale, ACL: acl,
		Summary:    "Tells what the subcommands do.",
		Complexity: "O(1)",
		Run:        help,
	}
}

func help(c *Ctx) {
	parent := c.Cmd.Parent()
	lines := []string{strings.ToUpper(parent.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	subs := slices.Clone(parent.Sub)
	slices.SortFunc(subs, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	for _, sub := range subs {
		if sub.Name != "help" {
			lines = append(lines, strings.TrimSpace(strings.ToUpper(sub.Name)+" "+sub.Usage()), "    "+sub.Summary)
		}
	}
	lines = append(lines, "HELP", "    Print this help.")
	c.Array(len(lines))
	for _, l := range lines {
		c.Status(l)
	}
}
