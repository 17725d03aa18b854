// Package monitor, internal to the server, is the family of MONITOR. What it shows is in server/monitor.
package monitor

import (
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	return []*command.Command{{
		Name: "monitor", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
		Summary: "Shows every command that the server runs from now on.",
		Run: func(c *command.Ctx) {
			if !c.CanBlock() {
				c.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
				return
			}
			if c.Session.Shown.Flags.Load()&command.ShownMonitor != 0 {
				return
			}
			s.Monitor.Add(c.Session)
			s.Connections.Limit(c.Session)
			c.OK()
		},
	}}
}
