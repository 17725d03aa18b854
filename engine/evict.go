package engine

// Eviction: one key is removed to free memory. It is the best of a few that are drawn at random, as in Redis; so no
// list of all keys in the order of their use is needed. Keys that somebody relies on are never evicted (promises).

import (
	"slices"

	"github.com/limitkv/limitkv/engine/limiter"
)

// evictLook is how many keys are looked at before no more are drawn, if there is a candidate by then.
const evictLook = 1024

// promises tells whether an entry is never evicted because somebody relies on it: locks, queues, and limiters with
// named grants.
func (e Entry) promises() bool {
	switch e.h.kind {
	case KindLock, KindDelayQueue:
		return true
	case KindLimiter:
		if e.h.flags&flagObject != 0 {
			_, named := e.object().obj.(*limiter.Named)
			return named
		}
	}
	return false
}

// goes is the opposite of promises.
func (e Entry) goes() bool { return !e.promises() }

// EvictBy is how keys are compared for eviction.
type EvictBy uint8

// The ways to choose.
const (
	EvictRandom EvictBy = iota
	EvictLRU            // the least recently used
	EvictLFU            // the least often used
	EvictTTL            // the next to expire
)

// Eviction is a policy.
type Eviction struct {
	By       EvictBy
	Volatile bool // only keys with a deadline
	Samples  int  // how many keys are drawn
	Random   func() uint64
	// Valid, if set, is called under the lock of the chosen key. If it returns false the key stays, because the
	// policy has changed meanwhile.
	Valid func() bool
}

// candidate is a key that may go. The one with the lowest score goes first.
type candidate struct {
	db    int
	key   []byte
	score int64
}

// Evicted is the result of an eviction.
type Evicted uint8

// What Evict reports.
const (
	EvictedOne  Evicted = iota // a key is gone
	EvictedNone                // no key may go
	EvictedHeld                // only keys that a running script holds could go
)

// Evict removes a key. The caller holds no shard. Keys that a running script holds are left alone.
func (ks *Keyspace) Evict(how Eviction) Evicted {
	best := candidate{}
	first := how.Random()
	drawn, looked, none := 0, 0, EvictedNone
	for i := uint64(0); i < shardCount && drawn < how.Samples && (drawn == 0 || looked < evictLook); i++ {
		n := (first + i) % shardCount
		if ks.TryInspect(LockSet{1 << n}, func(r *Reader) {
			v := (*View)(r)
			db, e, of := v.draw(&ks.shards[n], how)
			if looked += of; e.Ok() {
				if score := v.score(e, how.By); drawn == 0 || score < best.score {
					best = candidate{db, slices.Clone(e.Key()), score}
				}
				drawn++
			}
		}) != nil {
			none = EvictedHeld
		}
	}
	if drawn == 0 {
		return none
	}
	return ks.evict(best, how.Valid)
}

// evict removes a chosen key, if it is still there.
func (ks *Keyspace) evict(k candidate, valid func() bool) (became Evicted) {
	_, n := locate(k.key)
	became = EvictedHeld
	ks.upkeep(LockSet{1 << n}, ks.Clock.Now(), func(v *View) {
		if valid != nil && !valid() {
			return
		}
		became = EvictedOne
		v.DB = k.db
		e := v.Find(k.key)
		if !e.Ok() || !e.goes() {
			return
		}
		s := &ks.shards[n]
		v.unlink(s, e)
		s.stats.Evicted++
		before := v.changes
		v.Changed(k.key, EventEvicted, "evicted")
		if v.caused(before) {
			ks.Causes.Gone(v, k.key, true)
		}
	})
	return became
}

// draw picks a random key of a shard that may go, and returns how many keys it looked at.
func (v *View) draw(s *shard, how Eviction) (db int, e Entry, looked int) {
	if how.Volatile {
		return s.wheel.draw(how.Random())
	}
	keys := 0
	for i := range s.tables {
		keys += s.tables[i].used - s.tables[i].promised()
	}
	if keys == 0 {
		return 0, Entry{}, 0
	}
	at := int(how.Random() % uint64(keys))
	for db = range s.tables {
		if at -= s.tables[db].used - s.tables[db].promised(); at < 0 {
			break
		}
	}
	e, looked = s.tables[db].randomOf(how.Random(), Entry.goes)
	return db, e, looked
}

// draw picks a key with a deadline near a random place.
func (w *wheel) draw(r uint64) (db int, e Entry, looked int) {
	keys := 0
	for i, n := range w.volatileKeys {
		keys += n - w.promisedKeys[i]
	}
	if keys == 0 {
		return 0, Entry{}, 0
	}
	nodes := w.nodes[wheelHeads:]
	for i := range nodes {
		ref := nodes[(r+uint64(i))%uint64(len(nodes))].ref
		if ref == nil {
			continue
		}
		e := Entry{(*header)(ref)}
		if d := e.dueRef(); d.at != 0 && d.at != never && e.goes() {
			return int(d.db), e, i
		}
	}
	return 0, Entry{}, len(nodes)
}

func (v *View) score(e Entry, by EvictBy) int64 {
	switch by {
	case EvictLRU:
		return int64(e.h.access)
	case EvictLFU:
		return int64(v.Freq(e))
	case EvictTTL:
		return e.Deadline()
	}
	return 0
}
