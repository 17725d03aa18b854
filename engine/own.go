package engine

// Keys of a replica's own clients (replica-read-only no). The primary does not know them, so it never says that one
// of them has expired: the replica removes it itself, as Redis does. A key is in a set of names from when a client
// gives it a deadline until it has none any more. A flag in the entry would need a wheel that serves some entries and
// not others.

import (
	"sync"
	"sync/atomic"
)

// ownBatch is how many keys are looked at between two checks whether that was worth it.
const ownBatch = 64

// ownKeys are names of keys, by database. They are picked in random order.
type ownKeys struct {
	on atomic.Bool // clients may write as well as the primary
	n  atomic.Int64
	mu sync.Mutex // taken with a shard held, or alone
	of map[int]map[string]struct{}
}

// TrackOwn makes the keyspace serve deadlines that clients set from now on, though it leaves others to a primary
// (Leave). on = false ends that for new deadlines.
func (ks *Keyspace) TrackOwn(on bool) { ks.own.on.Store(on) }

// OwnKeys is how many keys have deadlines that clients of this replica set.
func (ks *Keyspace) OwnKeys() int64 { return ks.own.n.Load() }

func (o *ownKeys) add(db int, key []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = make(map[int]map[string]struct{})
	}
	keys := o.of[db]
	if keys == nil {
		keys = make(map[string]struct{})
		o.of[db] = keys
	}
	if _, known := keys[string(key)]; !known {
		keys[string(key)] = struct{}{}
		o.n.Add(1)
	}
}

func (o *ownKeys) forget(k waitKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.of[k.db][k.key]; known {
		delete(o.of[k.db], k.key)
		o.n.Add(-1)
	}
}

// flushed forgets the keys of a database that was emptied.
func (o *ownKeys) flushed(db int) {
	if o.n.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n.Add(-int64(len(o.of[db])))
	delete(o.of, db)
}

// some returns a few of the names.
func (o *ownKeys) some() (found []waitKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for db, keys := range o.of {
		for key := range keys {
			if found = append(found, waitKey{db, key}); len(found) == ownBatch {
				return found
			}
		}
	}
	return found
}

// ExpireOwn removes expired keys of a replica's own clients. It stops when most of the keys that it looked at stay;
// the next call looks at others. DEBUG SET-ACTIVE-EXPIRE turns it off, like all expiry that no client causes.
func (ks *Keyspace) ExpireOwn() {
	for ks.own.n.Load() != 0 && ks.expiryOff.Load()&(expiryLeft|expiryIdle) == expiryLeft {
		keys := ks.own.some()
		if ks.endOwn(keys, ks.Clock.Now()) <= len(keys)/4 {
			return
		}
	}
}

// endOwn removes those keys whose time is over. It returns how many of the keys no longer have a deadline.
func (ks *Keyspace) endOwn(keys []waitKey, now int64) (done int) {
	for _, k := range keys {
		key := []byte(k.key)
		_, i := locate(key)
		ks.upkeep(LockSet{1 << i}, now, func(v *View) {
			v.DB = k.db
			e := v.Find(key)
			d := e.Deadline()
			if d >= now/1000 {
				return
			}
			if d != 0 {
				v.expire(&ks.shards[i], e)
			}
			ks.own.forget(k)
			done++
		})
	}
	return done
}
