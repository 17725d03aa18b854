package server

// maxmemory: keys are evicted, or commands that need memory are refused, once what lives in memory is more than that.
//
// Only a collection tells what lives, so: while less than maxmemory is in use, garbage included, all is well, and that is
// looked at only as often as it may change. Once more is in use memory is collected, at once if it is small, beside the
// commands if it is large. Collections take a tenth of the time at the most; between them counts what the last one left
// alive, less what was evicted since. So up to the garbage of one such interval may be above maxmemory.

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

const (
	// smallHeap is the memory that a command may wait for to be collected: some milliseconds.
	smallHeap = 64 << 20
	// collectShare is the part of the time that collections may take: one in collectShare.
	collectShare = 10
	// collectBurst is for how many microseconds they may save that up.
	collectBurst = 2_000_000
	// fillPerMicro is how many bytes a microsecond may bring.
	fillPerMicro = 1000
	// headroom is above maxmemory what the Go runtime is told to hold itself to.
	headroom = 64 << 20
)

// limiter of memory.
type memoryLimit struct {
	s       *command.Server
	policy  *atomic.Pointer[string]
	samples *atomic.Int64

	nextLook atomic.Int64 // on the monotonic clock
	evicted  atomic.Int64 // bytes since the last collection
	over     atomic.Bool
	exceeded atomic.Int64 // since when; 0 = it is not

	mu         sync.Mutex // of what follows
	collecting bool
	nextTime   int64 // when the next collection may begin
	total      int64 // microseconds over the limit, for INFO
}

// declareMaxMemory declares the parameters and returns what acts on them.
func declareMaxMemory(s *command.Server) *memoryLimit {
	c := s.Config
	m := &memoryLimit{s: s}
	runtimeLimit := debug.SetMemoryLimit(-1)
	limit := c.Memory("maxmemory", 0, 0, math.MaxInt64, "bytes above which keys are evicted or writes refused, 0 for no limit")
	m.policy = c.Enum("maxmemory-policy", "noeviction", evictionPolicies, "what to evict; *-lfu makes OBJECT FREQ count")
	m.samples = c.Int("maxmemory-samples", 5, 1, 64, "of how many keys drawn at random the best is evicted")
	c.OnChange(func() {
		lfu := strings.HasSuffix(*m.policy.Load(), "-lfu")
		s.Keyspace.Each(func(ks *engine.Keyspace) { ks.LFU.Store(lfu) })
		n := limit.Load()
		s.MaxMemory.Store(n)
		m.nextLook.Store(0)
		if n == 0 || n > runtimeLimit/2 {
			debug.SetMemoryLimit(runtimeLimit)
		} else {
			debug.SetMemoryLimit(min(runtimeLimit, n+n/8+headroom))
		}
		if n != 0 {
			go m.makeRoom() // what is too much goes without waiting for a command; CONFIG SET may hold keys
		}
	}, "maxmemory", "maxmemory-policy")
	s.MakeRoom = m.makeRoom
	return m
}

// makeRoom evicts what is too much. It reports whether no more is in use than may be, and whether anything was evicted.
func (m *memoryLimit) makeRoom() (ok, evicted bool) {
	now := engine.Monotonic()
	if now < m.nextLook.Load() {
		return !m.over.Load(), false
	}
	limit := m.s.MaxMemory.Load()
	used, live := m.inUse()
	if used > limit && m.collect(used > smallHeap) {
		used, live = m.inUse()
	}
	over := used > limit && live > limit
	if over && *m.policy.Load() != "noeviction" {
		before := m.evicted.Load()
		over = !m.evict(live - limit)
		evicted = m.evicted.Load() > before
	}
	m.note(over, now)
	if !over && used < limit {
		m.nextLook.Store(now + (limit-used)/fillPerMicro)
	}
	return !over, evicted
}

// note keeps what INFO tells of the time over the limit.
func (m *memoryLimit) note(over bool, now int64) {
	if m.over.Swap(over) == over {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if over {
		m.exceeded.Store(now)
	} else if since := m.exceeded.Swap(0); since != 0 {
		m.total += now - since
	}
}

// exceededMillis is for how long memory has been, and was in all, above the limit.
func (m *memoryLimit) exceededMillis() (current, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since := m.exceeded.Load(); since != 0 {
		current = engine.Monotonic() - since
	}
	return current / 1000, (m.total + current) / 1000
}

// inUse is what is in use with garbage, and without as far as it is known.
func (m *memoryLimit) inUse() (used, live int64) {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64()) - m.evicted.Load()
}

// collect collects garbage, unless that was done too often lately. It reports whether it is done.
func (m *memoryLimit) collect(beside bool) bool {
	m.mu.Lock()
	now := engine.Monotonic()
	if m.collecting || now < m.nextTime {
		m.mu.Unlock()
		return false
	}
	m.collecting = true
	m.mu.Unlock()
	run := func() {
		evicted := m.evicted.Load()
		runtime.GC()
		m.evicted.Add(-evicted)
		m.mu.Lock()
		m.nextTime = max(m.nextTime, now-collectBurst) + collectShare*(engine.Monotonic()-now)
		m.collecting = false
		m.mu.Unlock()
	}
	if beside {
		go run()
		return false
	}
	run()
	return true
}

// evict removes keys until so many bytes are free. It reports whether there were enough.
func (m *memoryLimit) evict(bytes int64) bool {
	name := *m.policy.Load()
	how := engine.Eviction{
		Volatile: strings.HasPrefix(name, "volatile-"),
		Samples:  int(m.samples.Load()),
		Random:   m.s.Random,
		Size:     command.MemoryUsage,
	}
	switch {
	case strings.HasSuffix(name, "-lru"):
		how.By = engine.EvictLRU
	case strings.HasSuffix(name, "-lfu"):
		how.By = engine.EvictLFU
	case strings.HasSuffix(name, "-ttl"):
		how.By = engine.EvictTTL
	default:
		how.Samples = 1
	}
	for all := m.s.Keyspace.Siblings(); bytes > 0; {
		if len(all) == 0 {
			return false
		}
		i := int(m.s.Random() % uint64(len(all)))
		n, ok := all[i].Evict(how)
		if !ok {
			all = slices.Delete(all, i, i+1)
		}
		bytes -= int64(n)
		m.evicted.Add(int64(n))
	}
	return true
}
