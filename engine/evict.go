package engine

// Eviction: one key goes so that memory is freed. The key is the best of a few that are drawn at random, as in Redis,
// which needs no list of all keys in the order of their use. What promises something to somebody never goes.

import (
	"slices"

	"github.com/limitkv/limitkv/engine/limiter"
)

// evictLook is after how many keys that do not go those that were drawn will do.
const evictLook = 1024

// promises tells whether an entry is never evicted, since somebody relies on it: locks, queues, and limiters with named
// grants.
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

// EvictBy is what makes one key better to evict than another.
type EvictBy uint8

// The ways to choose.
const (
	EvictRandom EvictBy = iota
	EvictLRU            // the longest not used
	EvictLFU            // the least often used
	EvictTTL            // the next to expire
)

// Eviction is a policy.
type Eviction struct {
	By       EvictBy
	Volatile bool // only keys with a deadline
	Samples  int  // how many keys are drawn
	Random   func() uint64
	// Valid, if set, is asked under the lock of the chosen key: false keeps it, for the policy is another by now.
	Valid func() bool
}

// candidate is a key that may go. The lowest score goes first.
type candidate struct {
	db    int
	key   []byte
	score int64
}

// Evicted is what became of an eviction.
type Evicted uint8

// What Evict reports.
const (
	EvictedOne  Evicted = iota // a key is gone
	EvictedNone                // no key may go
	EvictedHeld                // none but such as a running script holds
)

// Evict removes a key. No shard may be held by the caller; keys that a running script holds are left alone.
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

// draw takes a key of a shard at random, one that may go, and tells how many it looked at.
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

// draw takes a key with a deadline near a random place.
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
