package connection

// CLIENT TRACKING and related commands. server/tracking does the tracking.

import (
	"strings"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/tracking"
)

func (f *family) trackingRows(acl []string, flags command.Flags) []*command.Command {
	return []*command.Command{
		{
			Name: "caching", Arity: 3, Since: "6.0.0", Flags: flags, ACL: acl,
			Summary:    "Says whether the keys of the next command are tracked.",
			Complexity: "O(1)",
			Syntax:     "mode=(YES | NO)",
			Run:        f.caching,
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
			Syntax:     "status=(ON | OFF) [REDIRECT client-id:integer] [PREFIX prefix:string...+] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
			Run:        f.trackingCommand,
		},
		{
			Name: "trackinginfo", Arity: 2, Since: "6.2.0", Flags: flags, ACL: acl,
			Summary:    "How tracking is set for this connection.",
			Complexity: "O(1)",
			Run:        f.trackingInfo,
		},
	}
}

func (f *family) caching(c *command.Ctx) {
	t := f.s.Tracker.Of(c.Session)
	if t == nil {
		c.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
		return
	}
	a := c.Cursor(2)
	yes := a.Is("YES")
	switch {
	case !yes && !a.Is("NO"):
		c.Error(command.ErrSyntax)
	case yes && !t.OptIn:
		c.Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case !yes && !t.OptOut:
		c.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	default:
		t.Caching = true
		c.OK()
	}
}

// trackingCommand reads all options before ON or OFF, as Redis does: the order decides which of two errors is replied.
func (f *family) trackingCommand(c *command.Ctx) {
	next := tracking.Client{Session: c.Session}
	a := c.Cursor(3)
	for a.More() {
		switch {
		case a.IsWith("REDIRECT", 1):
			if next.Redirect != 0 {
				a.Fail("ERR A client can only redirect to a single other client")
				break
			}
			next.Redirect = a.Int()
			if a.Err() == "" && f.s.Clients.Get(next.Redirect) == nil {
				a.Fail("ERR The client ID you want redirect to does not exist")
			}
		case a.Is("BCAST"):
			next.Broadcast = true
		case a.Is("OPTIN"):
			next.OptIn = true
		case a.Is("OPTOUT"):
			next.OptOut = true
		case a.Is("NOLOOP"):
			next.NoLoop = true
		case a.IsWith("PREFIX", 1):
			next.Prefixes = append(next.Prefixes, string(a.Bytes()))
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	switch on := c.Cursor(2); {
	case on.Is("ON"):
		if text := check(&next, f.s.Tracker.Of(c.Session)); text != "" {
			c.Error(text)
			return
		}
		f.s.Tracker.Start(&next)
	case on.Is("OFF"):
		f.s.Tracker.Stop(c.Session)
	default:
		c.Error(command.ErrSyntax)
		return
	}
	c.OK()
}

// check returns an error text if a session that tracks as was (nil if it does not track) cannot track as t.
func check(t, was *tracking.Client) string {
	switch {
	case !t.Broadcast && len(t.Prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case was != nil && was.Broadcast != t.Broadcast:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	case t.Broadcast && (t.OptIn || t.OptOut):
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case t.OptIn && t.OptOut:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case was != nil && (t.OptIn && was.OptOut || t.OptOut && was.OptIn):
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	overlap := func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
	const alone = "'. Prefixes for a single client must not overlap."
	for i, p := range t.Prefixes {
		if was != nil {
			for _, old := range was.Prefixes {
				if overlap(p, old) {
					return "ERR Prefix '" + p + "' overlaps with an existing prefix '" + old + alone
				}
			}
		}
		for _, other := range t.Prefixes[i+1:] {
			if overlap(p, other) {
				return "ERR Prefix '" + p + "' overlaps with another provided prefix '" + other + alone
			}
		}
	}
	return ""
}

func (f *family) trackingInfo(c *command.Ctx) {
	t := f.s.Tracker.Of(c.Session)
	flags, redirect := []string{"off"}, int64(-1)
	var prefixes []string
	if t != nil {
		flags, redirect, prefixes = []string{"on"}, t.Redirect, t.Prefixes
		add := func(on bool, name string) {
			if on {
				flags = append(flags, name)
			}
		}
		add(t.Broadcast, "bcast")
		add(t.OptIn, "optin")
		add(t.OptIn && t.Caching, "caching-yes")
		add(t.OptOut, "optout")
		add(t.OptOut && t.Caching, "caching-no")
		add(t.NoLoop, "noloop")
		add(c.Session.Shown.Flags.Load()&command.ShownTrackingBroken != 0, "broken_redirect")
	}
	c.Map(3)
	c.BulkString("flags")
	c.Set(len(flags))
	for _, name := range flags {
		c.BulkString(name)
	}
	c.BulkString("redirect")
	c.Int(redirect)
	c.BulkString("prefixes")
	c.Array(len(prefixes))
	for _, p := range prefixes {
		c.BulkString(p)
	}
}
