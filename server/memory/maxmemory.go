// Package memory, internal to the server, keeps memory below its limits: maxmemory and maxmemory-clients.
package memory

// maxmemory: above this limit keys are evicted, or commands that need memory are refused.
//
// Memory in use is that of the keys, which the engine counts as they change, and that of connections and scripts. The size of
// the heap would be wrong: up to half of it is garbage, only a collection shows how much, and evicting a key does not shrink
// it. cmd/limitkv tells the runtime to keep the garbage small if maxmemory is set.
//
// Keys are evicted before a command, for as long as a command may wait. The rest, after maxmemory was lowered a lot, is
// evicted in the background.

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

const (
	// tenacityMicros is how long keys are evicted before a command, for each unit of maxmemory-eviction-tenacity up to
	// tenacityLinear, as in Redis. Above, each unit multiplies the time by tenacityGrowth.
	tenacityMicros = 50
	tenacityLinear = 10
	tenacityGrowth = 1.15
	tenacityMax    = 100 // no limit
	// evictLook is after how many evicted keys the time is checked.
	evictLook = 16
)

// Keeper keeps memory below its limits. While maxmemory is set, MakeRoom is called before every command, with no shard held.
type Keeper struct {
	*clientEvictor
	s        *command.Server
	policy   *atomic.Pointer[string]
	samples  *atomic.Int64
	tenacity *atomic.Int64

	changes  atomic.Int64  // of limit and policy
	beside   atomic.Bool   // an eviction runs in the background
	peak     atomic.Uint64 // the highest memory use seen
	exceeded atomic.Int64  // since when, on the monotonic clock; 0: below the limit

	mu    sync.Mutex
	total int64 // microseconds above the limit, for INFO
}

var evictionPolicies = []string{
	"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction",
}

// New declares the parameters about memory.
func New(s *command.Server) *Keeper {
	c := s.Config
	k := &Keeper{s: s, clientEvictor: declareClientMemory(s)}
	limit := c.Memory("maxmemory", 0, 0, math.MaxInt64, "bytes above which keys are evicted or writes refused, 0 for no limit; garbage comes on top, up to an eighth and 64 MB")
	k.policy = c.Enum("maxmemory-policy", "noeviction", evictionPolicies, "what to evict; *-lfu makes OBJECT FREQ count")
	k.samples = c.Int("maxmemory-samples", 5, 1, 64, "of how many keys drawn at random the best is evicted")
	k.tenacity = c.Int("maxmemory-eviction-tenacity", tenacityLinear, 0, tenacityMax, "how long a command may wait for keys to be evicted, from 0 to 100 = as long as it takes")
	logFactor := c.Int("lfu-log-factor", s.Keyspace.LFURule.LogFactor.Load(), 0, math.MaxInt32, "how much less probable each step of an LFU counter is than the one before")
	decay := c.Int("lfu-decay-time", s.Keyspace.LFURule.DecayMinutes.Load(), 0, math.MaxInt32, "minutes without an access after which an LFU counter loses one, 0 = never")
	c.OnChange(func() {
		s.Keyspace.Each(func(ks *engine.Keyspace) {
			ks.LFURule.LogFactor.Store(logFactor.Load())
			ks.LFURule.DecayMinutes.Store(decay.Load())
		})
	}, "lfu-log-factor", "lfu-decay-time")
	c.OnChange(func() {
		lfu := strings.HasSuffix(*k.policy.Load(), "-lfu")
		s.Keyspace.Each(func(ks *engine.Keyspace) { ks.LFU.Store(lfu) })
		n := limit.Load()
		s.MaxMemory.Store(n)
		k.changes.Add(1)
		k.apply()
		if n == 0 {
			k.note(false)
		} else if k.evicts() && k.tooMuch(s.Keyspace.Clock.Now()) {
			k.evictBeside()
		}
	}, "maxmemory", "maxmemory-policy", "maxmemory-clients")
	return k
}

// evicts tells whether the policy evicts keys.
func (k *Keeper) evicts() bool {
	return *k.policy.Load() != "noeviction" && k.s.Replica.Load()&command.ReplicaNoEvicts == 0
}

// tooMuch tells whether memory use is above the limit.
func (k *Keeper) tooMuch(nowMicros int64) bool {
	limit := k.s.MaxMemory.Load()
	return limit != 0 && k.s.UsedMemory(nowMicros) > limit
}

// MakeRoom evicts keys if memory use is above the limit. ok tells whether memory is within the limit or soon will be, evicted
// whether anything was evicted.
func (k *Keeper) MakeRoom(nowMicros int64) (ok, evicted bool) {
	if !k.tooMuch(nowMicros) {
		if k.exceeded.Load() != 0 {
			k.note(false)
		}
		return true, false
	}
	if k.evicts() {
		ok, evicted = k.evict(nowMicros, evictionMicros(k.tenacity.Load()))
		if ok && k.tooMuch(nowMicros) {
			k.evictBeside()
		}
	}
	k.note(k.tooMuch(nowMicros))
	return ok, evicted
}

// evictionMicros is how long keys may be evicted before a command.
func evictionMicros(tenacity int64) int64 {
	switch {
	case tenacity == tenacityMax:
		return math.MaxInt64
	case tenacity > tenacityLinear:
		return int64(tenacityLinear * tenacityMicros * math.Pow(tenacityGrowth, float64(tenacity-tenacityLinear)))
	}
	return tenacity * tenacityMicros
}

// evictBeside evicts in the background, until memory is within the limit or no key can be evicted.
func (k *Keeper) evictBeside() {
	if !k.beside.CompareAndSwap(false, true) {
		return
	}
	k.s.Keyspace.Sched.Go(func() {
		for k.evicts() && !k.s.Pause.On() {
			now := k.s.Keyspace.Clock.Now()
			if !k.tooMuch(now) {
				break
			}
			if _, evicted := k.evict(now, evictionMicros(tenacityLinear)); !evicted {
				break
			}
		}
		k.beside.Store(false)
	})
}

// note records the time above the limit, for INFO.
func (k *Keeper) note(over bool) {
	if over == (k.exceeded.Load() != 0) {
		return
	}
	now := engine.Monotonic()
	k.mu.Lock()
	defer k.mu.Unlock()
	if over {
		k.exceeded.Store(now)
	} else if since := k.exceeded.Swap(0); since != 0 {
		k.total += now - since
	}
}

// Exceeded returns for how many milliseconds memory has been above the limit now, and in total.
func (k *Keeper) Exceeded() (current, total int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if since := k.exceeded.Load(); since != 0 {
		current = engine.Monotonic() - since
	}
	return current / 1000, (k.total + current) / 1000
}

// Saw records the memory in use, and returns the peak.
func (k *Keeper) Saw(used uint64) uint64 {
	for {
		was := k.peak.Load()
		if used <= was || k.peak.CompareAndSwap(was, used) {
			return max(used, was)
		}
	}
}

// ResetStats clears the peak and the time above the limit.
func (k *Keeper) ResetStats() {
	k.peak.Store(0)
	k.mu.Lock()
	k.total = 0
	k.exceeded.Store(0)
	k.mu.Unlock()
}

// evict removes keys until memory is within the limit, or for so many microseconds. It reports false if no key can be evicted.
// Keys that only a running script holds are left for later.
func (k *Keeper) evict(nowMicros, micros int64) (ok, evicted bool) {
	changes := k.changes.Load()
	name := *k.policy.Load()
	how := engine.Eviction{
		Volatile: strings.HasPrefix(name, "volatile-"),
		Samples:  int(k.samples.Load()),
		Random:   k.s.Random,
		Valid:    func() bool { return k.changes.Load() == changes },
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
	all := k.s.Keyspace.Siblings()
	for n := 1; k.tooMuch(nowMicros); n++ {
		if n%evictLook == 0 && engine.Monotonic()-began > micros {
			return true, evicted
		}
		i := int(k.s.Random() % uint64(len(all)))
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
