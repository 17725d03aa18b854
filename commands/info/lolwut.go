package info

// LOLWUT: a token bucket, drawn, and the version.

import (
	"strings"

	"github.com/limitkv/limitkv/server/command"
)

// bucketRows is how high the bucket is.
const bucketRows = 6

func (f *family) lolwutRow() *command.Command {
	return &command.Command{
		Name: "lolwut", Arity: -1, Group: command.GroupServer, Since: "5.0.0",
		Flags:   command.ReadOnly | command.Fast,
		Summary: "Draws something and tells the version.",
		Syntax:  "[VERSION version:integer]",
		Run: func(c *command.Ctx) {
			a := c.Cursor(1)
			if a.IsWith("VERSION", 1) {
				a.Int()
			}
			if a.Failed(c) {
				return
			}
			var b strings.Builder
			level := c.RandomN(bucketRows + 1)
			for row := bucketRows; row > 0; row-- {
				fill := "            "
				if row <= level {
					fill = "~o~~~o~~o~~~"[c.RandomN(3):][:9] + "~~~"
				}
				b.WriteString("   |" + fill + "|\n")
			}
			b.WriteString("   `-----..-----'\n         ''  one drop at a time\n\n")
			b.WriteString("limitkv " + f.s.Version + ", Redis ver. " + command.RedisVersion + "\n")
			c.Verbatim("txt", b.String())
		},
	}
}
