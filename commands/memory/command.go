package memory

// MEMORY: how much memory a key takes, and how much the server takes.

import (
	"runtime/debug"
	"strconv"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/value"
)

func (f *family) memoryRow() *command.Command {
	special := []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}
	return &command.Command{
		Name: "memory", Arity: -2, Group: command.GroupServer, Since: "4.0.0",
		Summary:    "Commands about memory.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "doctor", Arity: 2, Since: "4.0.0",
				Summary:    "A report of problems with memory, in words.",
				Complexity: "O(1)",
				Tips:       special,
				Run: func(c *command.Ctx) {
					c.Verbatim("txt", "Nothing to complain of: limitkv's memory is collected and does not fragment. INFO memory has the numbers.\n")
				},
			},
			command.HelpRow("4.0.0"),
			{
				Name: "malloc-stats", Arity: 2, Since: "4.0.0",
				Summary:    "What the allocator says of itself.",
				Complexity: "O(1)",
				Tips:       special,
				Run: func(c *command.Ctx) {
					var w command.InfoWriter
					u := memoryUsage()
					w.Line("heap_objects", u.objects)
					w.Line("heap", u.heap)
					w.Line("overhead", u.overhead)
					w.Line("resident", u.resident)
					c.Verbatim("txt", w.String())
				},
			},
			{
				Name: "purge", Arity: 2, Since: "4.0.0", Flags: command.TakesTime,
				Summary:    "Collects garbage and gives free memory back to the system.",
				Complexity: "Depends on how much memory is in use",
				Tips:       []string{"request_policy:all_shards", "response_policy:all_succeeded"},
				Run:        func(c *command.Ctx) { debug.FreeOSMemory(); c.OK() },
			},
			{
				Name: "stats", Arity: 2, Since: "4.0.0", Flags: command.WholeKeyspace,
				Summary:    "Where the memory goes.",
				Complexity: "O(1)",
				Tips:       special,
				Run:        f.memoryStats,
			},
			{
				Name: "usage", Arity: -3, Since: "4.0.0", Flags: command.ReadOnly,
				Keys:       []command.KeySpec{command.Key(2, command.RO)},
				Summary:    "What a key and its value take in memory, in bytes.",
				Complexity: "O(N) in the number of elements looked at",
				Syntax:     "key [SAMPLES count:integer]",
				Run:        memoryUsageCommand,
			},
		},
	}
}

// memoryUsageCommand replies the size of an entry. SAMPLES is checked but not needed: structures know their sizes.
func memoryUsageCommand(c *command.Ctx) {
	a := c.Cursor(3)
	for a.More() {
		if !a.IsWith("SAMPLES", 1) || a.Int() < 0 {
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	e := c.Peek(c.Args[2])
	if !e.Ok() {
		c.Null()
		return
	}
	c.Int(int64(value.MemoryUsage(e)))
}

func (f *family) memoryStats(c *command.Ctx) {
	u := f.usage()
	used, overhead := f.used()
	top := f.s.Keeper.Saw(used)
	keys := 0
	var dbs []int
	tally := c.Tables()
	for db, st := range tally.DBs {
		if st.Keys > 0 {
			keys += st.Keys
			dbs = append(dbs, db)
		}
	}
	dataset := used - overhead
	ratio := func(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }
	type field struct {
		name   string
		isPart bool
		whole  int64
		part   float64
	}
	whole := func(name string, v uint64) field { return field{name: name, whole: int64(v)} }
	part := func(name string, v float64) field { return field{name: name, isPart: true, part: v} }
	backlog, _, replicas := f.s.Replication.Memory()
	fields := [...]field{
		whole("peak.allocated", top), whole("total.allocated", used), whole("startup.allocated", f.startMemory),
		whole("replication.backlog", uint64(backlog)), whole("replica.fullsync.buffer", 0), whole("clients.slaves", uint64(replicas)),
		whole("clients.normal", uint64(f.s.ClientBytes.Load())), whole("cluster.links", 0), whole("aof.buffer", 0),
		whole("overhead.total", overhead),
		whole("keys.count", uint64(keys)), whole("keys.bytes-per-key", dataset/uint64(max(keys, 1))), whole("dataset.bytes", dataset),
		part("dataset.percentage", 100*ratio(dataset, used-f.startMemory)), part("peak.percentage", 100*ratio(used, top)),
		whole("allocator.allocated", u.objects), whole("allocator.active", u.heap), whole("allocator.resident", u.resident), whole("allocator.muzzy", 0),
		part("allocator-fragmentation.ratio", ratio(u.heap, u.objects)), whole("allocator-fragmentation.bytes", u.heap-u.objects),
		part("allocator-rss.ratio", ratio(u.resident, u.heap)), whole("allocator-rss.bytes", u.resident-u.heap), // below 0, too
		part("rss-overhead.ratio", 1), whole("rss-overhead.bytes", 0),
		part("fragmentation", ratio(u.resident, used)), whole("fragmentation.bytes", u.resident-used),
	}
	c.Map(len(fields) + len(dbs))
	for i := range fields {
		f := &fields[i]
		c.BulkString(f.name)
		if f.isPart {
			c.Double(f.part)
		} else {
			c.Int(f.whole)
		}
	}
	for _, db := range dbs {
		st := &tally.DBs[db]
		c.BulkString("db." + strconv.Itoa(db))
		c.Map(2)
		c.BulkString("overhead.hashtable.main")
		c.Int(int64(st.TableBytes))
		c.BulkString("overhead.hashtable.expires")
		c.Int(int64(st.Expires) * wheelNodeBytes)
	}
}

// wheelNodeBytes is what a deadline takes besides its entry.
const wheelNodeBytes = 24
