package server

// maxmemory: keys are evicted, or commands that need memory are refused, once more is in use than that.
//
// What is in use is what the keys take, which the engine counts as they come and go, and what connections and scripts do.
// The heap would be the wrong thing to look at: up to half of it is garbage, only a collection tells how much, and
// evicting a key does not make it smaller. cmd/limitkv tells the runtime to keep the garbage small where maxmemory is.
//
// Keys go before a command runs, for as long as a command may wait for it; what is left to be freed, since maxmemory was
// set to much less than is there, goes beside the commands.

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

const (
	// tenacityMicros is for how long keys are evicted before a command for each of maxmemory-eviction-tenacity up to
	// tenacityLinear, as in Redis; tenacityGrowth is by how much more from there on.
	tenacityMicros = 50
	tenacityLinear = 10
	tenacityGrowth = 1.15
	tenacityMax    = 100 // there is no limit
	// evictLook is after how many keys the time is looked at.
	evictLook = 16
)

// limiter of memory.
type memoryLimit struct {
	s        *command.Server
	policy   *atomic.Pointer[string]
	samples  *atomic.Int64
	tenacity *atomic.Int64

	changes  atomic.Int64 // of limit and policy
	beside   atomic.Bool  // keys are being evicted beside the commands
	exceeded atomic.Int64 // since when on the monotonic clock; 0 = it is not

	mu    sync.Mutex
	total int64 // microseconds over the limit, for INFO
}

// declareMaxMemory declares the parameters and returns what acts on them.
func declareMaxMemory(s *command.Server) *memoryLimit {
	c := s.Config
	m := &memoryLimit{s: s}
	limit := c.Memory("maxmemory", 0, 0, math.MaxInt64, "bytes above which keys are evicted or writes refused, 0 for no limit; garbage comes on top, up to an eighth and 64 MB")
	m.policy = c.Enum("maxmemory-policy", "noeviction", evictionPolicies, "what to evict; *-lfu makes OBJECT FREQ count")
	m.samples = c.Int("maxmemory-samples", 5, 1, 64, "of how many keys drawn at random the best is evicted")
	m.tenacity = c.Int("maxmemory-eviction-tenacity", tenacityLinear, 0, tenacityMax, "how long a command may wait for keys to be evicted, from 0 to 100 = as long as it takes")
	logFactor := c.Int("lfu-log-factor", s.Keyspace.LFURule.LogFactor.Load(), 0, math.MaxInt32, "how much less probable each step of an LFU counter is than the one before")
	decay := c.Int("lfu-decay-time", s.Keyspace.LFURule.DecayMinutes.Load(), 0, math.MaxInt32, "minutes without an access after which an LFU counter loses one, 0 = never")
	c.OnChange(func() {
		s.Keyspace.Each(func(ks *engine.Keyspace) {
			ks.LFURule.LogFactor.Store(logFactor.Load())
			ks.LFURule.DecayMinutes.Store(decay.Load())
		})
	}, "lfu-log-factor", "lfu-decay-time")
	clients := declareClientMemory(s)
	c.OnChange(func() {
		lfu := strings.HasSuffix(*m.policy.Load(), "-lfu")
		s.Keyspace.Each(func(ks *engine.Keyspace) { ks.LFU.Store(lfu) })
		n := limit.Load()
		s.MaxMemory.Store(n)
		m.changes.Add(1)
		clients.apply()
		if n == 0 {
			m.note(false)
		} else if m.evicts() && m.tooMuch(s.Keyspace.Clock.Now()) {
			m.evictBeside()
		}
	}, "maxmemory", "maxmemory-policy", "maxmemory-clients")
	s.MakeRoom = m.makeRoom
	return m
}

// evicts tells whether the policy is to evict keys.
func (m *memoryLimit) evicts() bool { return *m.policy.Load() != "noeviction" }

// tooMuch tells whether more is in use than may be.
func (m *memoryLimit) tooMuch(nowMicros int64) bool {
	limit := m.s.MaxMemory.Load()
	return limit != 0 && m.s.UsedMemory(nowMicros) > limit
}

// makeRoom evicts what is too much. It reports whether no more is in use than may be, or soon will be, and whether
// anything was evicted.
func (m *memoryLimit) makeRoom(nowMicros int64) (ok, evicted bool) {
	if !m.tooMuch(nowMicros) {
		if m.exceeded.Load() != 0 {
			m.note(false)
		}
		return true, false
	}
	if m.evicts() {
		ok, evicted = m.evict(nowMicros, evictionMicros(m.tenacity.Load()))
		if ok && m.tooMuch(nowMicros) {
			m.evictBeside()
		}
	}
	m.note(m.tooMuch(nowMicros))
	return ok, evicted
}

// evictionMicros is for how long keys may be evicted before a command.
func evictionMicros(tenacity int64) int64 {
	switch {
	case tenacity == tenacityMax:
		return math.MaxInt64
	case tenacity > tenacityLinear:
		return int64(tenacityLinear * tenacityMicros * math.Pow(tenacityGrowth, float64(tenacity-tenacityLinear)))
	}
	return tenacity * tenacityMicros
}

// evictBeside evicts beside the commands, until there is no more too much or nothing that may go.
func (m *memoryLimit) evictBeside() {
	if !m.beside.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer m.s.Caught("eviction")
		for m.evicts() && !m.s.Pause.On() {
			now := m.s.Keyspace.Clock.Now()
			if !m.tooMuch(now) {
				break
			}
			if _, evicted := m.evict(now, evictionMicros(tenacityLinear)); !evicted {
				break
			}
		}
		m.beside.Store(false)
	}()
}

// note keeps what INFO tells of the time over the limit.
func (m *memoryLimit) note(over bool) {
	if over == (m.exceeded.Load() != 0) {
		return
	}
	now := engine.Monotonic()
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

// resetExceeded is for CONFIG RESETSTAT.
func (m *memoryLimit) resetExceeded() {
	m.mu.Lock()
	m.total = 0
	m.exceeded.Store(0)
	m.mu.Unlock()
}

// evict removes keys until no more is in use than may be, or for so many microseconds. It reports false if there is
// nothing left that may go; what only a running script keeps from going is for later.
func (m *memoryLimit) evict(nowMicros, micros int64) (ok, evicted bool) {
	changes := m.changes.Load()
	name := *m.policy.Load()
	how := engine.Eviction{
		Volatile: strings.HasPrefix(name, "volatile-"),
		Samples:  int(m.samples.Load()),
		Random:   m.s.Random,
		Valid:    func() bool { return m.changes.Load() == changes },
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
	began := engine.Monotonic()
	all := m.s.Keyspace.Siblings()
	for n := 1; m.tooMuch(nowMicros); n++ {
		if n%evictLook == 0 && engine.Monotonic()-began > micros {
			return true, evicted
		}
		i := int(m.s.Random() % uint64(len(all)))
		switch all[i].Evict(how) {
		case engine.EvictedOne:
			evicted = true
		case engine.EvictedHeld:
			return true, evicted
		case engine.EvictedNone:
			if all = slices.Delete(all, i, i+1); len(all) == 0 {
				return false, evicted
			}
		}
	}
	return true, evicted
}
