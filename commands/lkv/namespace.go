package lkv

// LKV.NAMESPACE: tests that run at once share a server, each with its own
// databases, channels, functions, faults, log and snapshots.

import (
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

const (
	errNamespaceName = "ERR the name of a namespace has 1 to 128 bytes"
	errNamespaceMany = "ERR there are too many namespaces already"
	errNamespaceBusy = "ERR a connection that watches, subscribes, tracks or monitors stays in its namespace"
)

type namespaces struct{ s *server.Server }

func namespaceRow(s *server.Server) *command.Command {
	f, n := family{s}, namespaces{s}
	return &command.Command{
		Name: "lkv.namespace", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Gives connections databases, channels and functions of their own.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			f.row("use", 3, "name:string", "Takes the connection to database 0 of a namespace, which is made if there is none of the name.", n.use),
			f.row("leave", 2, "", "Takes the connection out of its namespace, to the server's own database 0.", n.leave),
			f.row("get", 2, "", "Returns the name of the connection's namespace.", n.get),
			f.row("port", 3, "name:string", "Returns a port whose connections are in a namespace from their beginning; it is made if there is none of the name.", n.port),
			f.row("drop", 3, "name:string", "Removes a namespace with all that it has, and ends its connections.", n.drop),
			f.row("list", 2, "", "Lists the namespaces: names, ports and numbers of connections.", n.list),
		},
	}
}

// make finds the named namespace, or makes it. If it returns nil, it has replied the error.
func (n namespaces) make(c *command.Ctx) *command.Namespace {
	name := c.Args[2]
	if len(name) == 0 || len(name) > nameBytesMax {
		c.Error(errNamespaceName)
		return nil
	}
	ns := n.s.Namespaces.Make(n.s.Server, string(name))
	if ns == nil {
		c.Error(errNamespaceMany)
	}
	return ns
}

// stays replies an error if a connection still uses something in its namespace, and reports that.
func stays(c *command.Ctx) bool {
	s := c.Session
	const bound = command.ShownTracking | command.ShownMonitor
	if s.Multi.Watcher.Watching() || s.Subscriptions.Load() > 0 || s.Shown.Flags.Load()&bound != 0 {
		c.Error(errNamespaceBusy)
		return true
	}
	return false
}

func (n namespaces) use(c *command.Ctx) {
	if stays(c) {
		return
	}
	if ns := n.make(c); ns != nil {
		c.Session.SetNamespace(ns)
		if !n.s.Namespaces.Has(ns) { // dropped at this moment
			c.Session.SetNamespace(nil)
			c.Error(command.ErrNoNamespace)
			return
		}
		c.OK()
	}
}

func (n namespaces) leave(c *command.Ctx) {
	if stays(c) {
		return
	}
	c.Session.SetNamespace(nil)
	c.OK()
}

func (n namespaces) get(c *command.Ctx) {
	if ns := c.Session.Namespace(); ns != nil {
		c.BulkString(ns.Name)
	} else {
		c.Null()
	}
}

func (n namespaces) port(c *command.Ctx) {
	ns := n.make(c)
	if ns == nil {
		return
	}
	port, err := n.s.Namespaces.Listen(ns, n.s.Open)
	if err != nil {
		c.Error("ERR no port: " + err.Error())
		return
	}
	c.Int(int64(port))
}

func (n namespaces) drop(c *command.Ctx) {
	ns := n.s.Namespaces.Find(string(c.Args[2]))
	switch {
	case ns == nil:
		c.Error(command.ErrNoNamespace)
	case ns == c.Session.Namespace():
		c.Error("ERR this connection is in the namespace")
	case !n.s.Namespaces.Drop(n.s.Server, ns): // another client dropped it first
		c.Error(command.ErrNoNamespace)
	default:
		c.OK()
	}
}

func (n namespaces) list(c *command.Ctx) {
	clients := map[*command.Namespace]int{}
	for _, s := range n.s.Clients.All() {
		clients[s.Namespace()]++
	}
	all := n.s.Namespaces.All()
	c.Array(len(all))
	for _, ns := range all {
		c.Map(3)
		c.BulkString("name")
		c.BulkString(ns.Name)
		c.BulkString("port")
		c.Int(int64(n.s.Namespaces.PortOf(ns)))
		c.BulkString("clients")
		c.Int(int64(clients[ns]))
	}
}
