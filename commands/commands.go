// Package commands, internal to the server, is the table of all commands, with a package for each family.
package commands

import (
	"slices"

	"github.com/limitkv/limitkv/commands/acl"
	"github.com/limitkv/limitkv/commands/bitmap"
	"github.com/limitkv/limitkv/commands/catalog"
	"github.com/limitkv/limitkv/commands/cluster"
	"github.com/limitkv/limitkv/commands/config"
	"github.com/limitkv/limitkv/commands/connection"
	"github.com/limitkv/limitkv/commands/debug"
	"github.com/limitkv/limitkv/commands/delayqueue"
	"github.com/limitkv/limitkv/commands/generic"
	"github.com/limitkv/limitkv/commands/geo"
	"github.com/limitkv/limitkv/commands/hash"
	"github.com/limitkv/limitkv/commands/hyperloglog"
	"github.com/limitkv/limitkv/commands/info"
	"github.com/limitkv/limitkv/commands/latency"
	"github.com/limitkv/limitkv/commands/lifecycle"
	"github.com/limitkv/limitkv/commands/list"
	"github.com/limitkv/limitkv/commands/lkv"
	"github.com/limitkv/limitkv/commands/lock"
	"github.com/limitkv/limitkv/commands/memory"
	"github.com/limitkv/limitkv/commands/monitor"
	"github.com/limitkv/limitkv/commands/persistence"
	"github.com/limitkv/limitkv/commands/pubsub"
	"github.com/limitkv/limitkv/commands/ratelimit"
	"github.com/limitkv/limitkv/commands/replication"
	"github.com/limitkv/limitkv/commands/scripting"
	"github.com/limitkv/limitkv/commands/set"
	"github.com/limitkv/limitkv/commands/sortedset"
	"github.com/limitkv/limitkv/commands/str"
	"github.com/limitkv/limitkv/commands/stream"
	"github.com/limitkv/limitkv/commands/transactions"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// New makes a server that has all commands, and those of the options' families. Tests use those to add commands that fail.
func New(o server.Options) (*server.Server, error) {
	for _, family := range data {
		o.Families = append(o.Families, func(s *server.Server) []*command.Command { return family(s.Server) })
	}
	o.Families = slices.Concat(o.Families, families)
	return server.New(o)
}

// data are the families of the data types, which need no more than the context that each command gets; families are the
// others.
var (
	data = []func(*command.Server) []*command.Command{
		bitmap.Commands,
		delayqueue.Commands,
		lock.Commands,
		geo.Commands,
		hash.Commands,
		hyperloglog.Commands,
		ratelimit.Commands,
		list.Commands,
		set.Commands,
		sortedset.Commands,
		str.Commands,
		stream.Commands,
	}
	families = []func(*server.Server) []*command.Command{
		acl.Commands,
		cluster.Commands,
		connection.Commands,
		generic.Commands,
		scripting.Commands,
		lkv.Commands,
		replication.Commands,
		persistence.Commands,
		pubsub.Commands,
		transactions.Commands,
		catalog.Commands,
		debug.Commands,
		info.Commands,
		latency.Commands,
		lifecycle.Commands,
		memory.Commands,
		monitor.Commands,
		clockCommands,
		config.Commands, // last: it declares the parameters that nobody else has
	}
)
