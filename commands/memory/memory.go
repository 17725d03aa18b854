// Package memory, internal to the server, is the family of the server's memory: MEMORY, INFO memory, maxmemory and
// maxmemory-clients. This file measures how much the process uses.
package memory

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// usage is the process's memory, as the Go runtime and the system report it. maxmemory counts another number:
// Server.MeasureMemory.
type usage struct {
	objects  uint64 // live and not yet collected
	heap     uint64 // reserved for the heap
	overhead uint64 // stacks and the runtime's own
	resident uint64
}

func memoryUsage() usage {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	u := usage{objects: s[0].Value.Uint64()}
	u.heap = u.objects + s[1].Value.Uint64() + s[2].Value.Uint64()
	total := s[3].Value.Uint64() - s[4].Value.Uint64()
	u.overhead = total - u.heap
	if u.resident = residentBytes(); u.resident == 0 {
		u.resident = total
	}
	return u
}

// residentBytes is the process's resident memory, 0 if the system does not report it.
func residentBytes() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

type family struct {
	s *server.Server
	// startMemory is what the process used when the server was made.
	startMemory uint64

	mu     sync.Mutex
	looked int64 // when last was, by the monotonic clock
	last   usage
}

// systemOnce is the machine's memory, which does not change.
var systemOnce = sync.OnceValue(systemMemory)

// usageMicros is how long INFO shows the same usage: asking the system costs more than the rest of INFO. Redis samples as
// often.
const usageMicros = 100_000

// usage is memoryUsage, at most usageMicros old.
func (f *family) usage() usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := engine.Monotonic(); f.looked == 0 || now-f.looked >= usageMicros {
		f.looked, f.last = now, memoryUsage()
	}
	return f.last
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s, startMemory: memoryUsage().objects}
	s.OtherMemory = append(s.OtherMemory, func() int64 { return int64(f.startMemory) }, s.ClientBytes.Load, func() int64 {
		backlog, _, _ := s.Replication.Memory()
		return backlog
	})
	s.AddInfo(command.InfoSection{Name: "memory", Default: true, Write: f.infoMemory})
	return []*command.Command{f.memoryRow()}
}

func (f *family) infoMemory(w *command.InfoWriter) {
	u := f.usage()
	used, overhead := f.used()
	top := f.s.Keeper.Saw(used)
	ratio := func(field string, a, b uint64) { w.Decimal(field, float64(a)/float64(max(b, 1)), 2, "") }
	w.Section("Memory")
	w.Bytes("used_memory", used)
	w.Bytes("used_memory_rss", u.resident)
	w.Bytes("used_memory_peak", top)
	w.Decimal("used_memory_peak_perc", 100*float64(used)/float64(max(top, 1)), 2, "%")
	w.Line("used_memory_overhead", overhead)
	w.Line("used_memory_startup", f.startMemory)
	w.Line("used_memory_dataset", used-overhead)
	w.Decimal("used_memory_dataset_perc", 100*float64(used-overhead)/float64(max(used-f.startMemory, 1)), 2, "%")
	w.Line("allocator_allocated", u.objects)
	w.Line("allocator_active", u.heap)
	w.Line("allocator_resident", u.resident)
	w.Line("allocator_muzzy", 0)
	w.Bytes("total_system_memory", systemOnce())
	for _, add := range f.s.InfoMemory {
		add(w)
	}
	w.Bytes("maxmemory", uint64(f.s.MaxMemory.Load()))
	w.Line("maxmemory_policy", f.s.Config.Value("maxmemory-policy"))
	ratio("allocator_frag_ratio", u.heap, u.objects)
	w.Line("allocator_frag_bytes", u.heap-u.objects)
	ratio("allocator_rss_ratio", u.resident, u.heap)
	w.Line("allocator_rss_bytes", int64(u.resident)-int64(u.heap))
	w.Line("rss_overhead_ratio", "1.00") // all that is resident counts as the allocator's
	w.Line("rss_overhead_bytes", 0)
	ratio("mem_fragmentation_ratio", u.resident, used)
	w.Line("mem_fragmentation_bytes", int64(u.resident)-int64(used))
	w.Line("mem_not_counted_for_evict", f.uncounted())
	backlog, buffers, replicas := f.s.Replication.Memory()
	w.Line("mem_replication_backlog", backlog)
	w.Line("mem_total_replication_buffers", buffers)
	w.Line("mem_replica_full_sync_buffer", 0)
	w.Line("mem_clients_slaves", replicas)
	w.Line("mem_clients_normal", f.s.ClientBytes.Load())
	w.Line("mem_cluster_links", 0)
	w.Line("mem_aof_buffer", 0)
	w.Line("mem_allocator", "go")
	w.Line("mem_overhead_db_hashtable_rehashing", 0)
	w.Line("active_defrag_running", 0)
	w.Line("lazyfree_pending_objects", 0)
	w.Line("lazyfreed_objects", f.s.Stats.LazyFreed.Load())
}

// uncounted is how many bytes of the replication stream are kept beyond the backlog, for replicas that are behind. They are
// in use, but maxmemory does not count them: a slow replica must not cause evictions or refused writes.
func (f *family) uncounted() int64 {
	backlog, buffers, _ := f.s.Replication.Memory()
	return buffers - backlog
}

// used is how many bytes are in use, and how many of them are not keys.
func (f *family) used() (used, overhead uint64) {
	more := f.uncounted()
	other, all := f.s.MeasureMemory()
	other, all = other+more, all+more
	used = uint64(max(all, 0))
	return used, min(uint64(other), used)
}
