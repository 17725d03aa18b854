package connection

// Client-side caching: CLIENT TRACKING and what belongs to it.

import (
	"github.com/limitkv/limitkv/commands/command"
)

func (f *family) trackingRows(acl []string, flags command.Flags) []*command.Command {
	return []*command.Command{
		{
			Name: "caching", Arity: 3, Since: "6.0.0", Flags: flags, ACL: acl,
			Summary:    "Says whether the keys of the next command are tracked.",
			Complexity: "O(1)",
			Syntax:     "mode=(YES | NO)",
			Run:        caching,
		},
		{
			Name: "getredir", Arity: 2, Since: "6.0.0", Flags: flags, ACL: acl,
			Summary:    "The client that this connection's invalidations go to.",
			Complexity: "O(1)",
			Run:        func(c *command.Ctx) { c.Int(c.Session.Shown.Redirect.Load() - 1) },
		},
		{
			Name: "tracking", Arity: -3, Since: "6.0.0", Flags: flags, ACL: acl,
			Summary:    "Turns on or off that the client is told of changes to what it has read.",
			Complexity: "O(1), with prefixes O(N) in their number",
			Syntax:     "status=(ON | OFF) [REDIRECT client-id:integer] [PREFIX prefix:string...+] [BCAST=BCAST] [OPTIN=OPTIN] [OPTOUT=OPTOUT] [NOLOOP=NOLOOP]",
			Run:        tracking,
		},
		{
			Name: "trackinginfo", Arity: 2, Since: "6.2.0", Flags: flags, ACL: acl,
			Summary:    "How tracking is set for this connection.",
			Complexity: "O(1)",
			Run:        trackingInfo,
		},
	}
}

func caching(c *command.Ctx) {
	c.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
}

func tracking(c *command.Ctx) {
	a := c.Cursor(2)
	switch {
	case a.Is("ON"):
		c.Error("ERR client-side caching is not there yet")
	case a.Is("OFF"):
		c.OK()
	default:
		c.Error(command.ErrSyntax)
	}
}

func trackingInfo(c *command.Ctx) {
	c.Map(3)
	c.BulkString("flags")
	c.Set(1)
	c.BulkString("off")
	c.BulkString("redirect")
	c.Int(-1)
	c.BulkString("prefixes")
	c.Array(0)
}
