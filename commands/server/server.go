// Package server is the family of commands about the server: COMMAND, CONFIG,
// INFO, the slow log, memory, whole databases, its end.
package server

import (
	"strconv"
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/params"
)

// family is the state of the server commands.
type family struct {
	s     *command.Server
	rates rates
	peak  peak
	// replID names what replicas would copy; nil is the name of the run.
	replID atomic.Pointer[string]
	// startMemory is what the process used when it was made.
	startMemory uint64

	slow        slowlog
	latency     latencyMonitor
	monitors    monitors
	percentiles percentiles
	memory      *memoryLimit
	dumps       *params.Dumps
	pieces      atomic.Int64                // of memory let go since that was told
	saved       command.PerKeyspace[[]byte] // by DEBUG RELOAD, guarded by the locks of all its shards

	slowerThan, slowMax, latencyThreshold *atomic.Int64
	tracking                              *atomic.Bool
	debugFrom                             *atomic.Pointer[string]
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s: s, dumps: s.Config.Dumps()}
	f.saved.Begin(s, nil)
	s.Mutexes = append(s.Mutexes, &f.slow.mu, &f.latency.mu, &f.monitors.mu)
	f.startMemory = memoryUsage().objects
	s.LetGo = f.letGo
	s.OtherMemory = append(s.OtherMemory, func() int64 { return int64(f.startMemory) }, s.ClientBytes.Load)
	f.declareParams()
	f.declareSlow()
	f.declareLatencyStats()
	f.declareMonitor()
	f.addInfo()
	rows := []*command.Command{
		f.commandRow(),
		f.configRow(),
		f.infoRow(),
		f.slowlogRow(),
		f.latencyRow(),
		f.memoryRow(),
		f.monitorRow(),
		f.debugRow(),
		f.lolwutRow(),
		moduleRow(),
		{
			Name: "dbsize", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.ReadOnly | command.Fast | command.WholeKeyspace | command.LeavesCold,
			ACL:        []string{"keyspace"},
			Summary:    "How many keys the database has.",
			Complexity: "O(1)",
			Tips:       []string{"request_policy:all_shards", "response_policy:agg_sum"},
			Run:        func(c *command.Ctx) { c.Int(int64(c.Count())) },
		},
		{
			Name: "time", Arity: 1, Group: command.GroupServer, Since: "2.6.0",
			Flags:      command.Loading | command.Stale | command.Fast,
			Summary:    "The server's time: Unix seconds, and microseconds of the second.",
			Complexity: "O(1)",
			Tips:       []string{"nondeterministic_output"},
			Run: func(c *command.Ctx) {
				c.Array(2)
				c.BulkString(strconv.FormatInt(c.Now/1e6, 10))
				c.BulkString(strconv.FormatInt(c.Now%1e6, 10))
			},
		},
	}
	rows = append(rows, f.flushRows()...)
	rows = append(rows, f.lifecycleRows()...)
	rows = append(rows, f.replicationRows()...)
	declarePlain(s.Config)
	return rows
}
