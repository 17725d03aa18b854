package engine

// WATCH, and whom every change of a key is reported to.

import (
	"slices"
	"sync/atomic"
)

// Watcher notes that one of the keys that it watches has changed.
type Watcher struct {
	dirty atomic.Bool
	keys  []waitKey
}

// watch is one watcher of a key. gone: the key had expired already when the watch began, so its removal is no change.
type watch struct {
	w    *Watcher
	gone bool
}

// Dirty tells whether a watched key changed.
func (w *Watcher) Dirty() bool { return w.dirty.Load() }

// Watching tells whether any key is watched.
func (w *Watcher) Watching() bool { return len(w.keys) > 0 }

// Len is how many keys are watched.
func (w *Watcher) Len() int { return len(w.keys) }

// AddTo adds the shards of the watched keys to a lock set.
func (w *Watcher) AddTo(set *LockSet) {
	for _, k := range w.keys {
		set.AddKey([]byte(k.key))
	}
}

// Watch begins to watch a key, whose shard is held. As in Redis, an expired key is left for the next command to
// remove, and its removal is no change.
func (v *View) Watch(w *Watcher, key []byte) {
	k := waitKey{v.DB, string(key)}
	if slices.Contains(w.keys, k) {
		return
	}
	gone := v.over(v.Find(key))
	if !gone {
		v.Peek(key) // removes what is idle or partly expired
	}
	v.doubt = true
	_, s := v.locate(key)
	if s.watches == nil {
		s.watches = make(map[waitKey][]watch)
	}
	s.watches[k] = append(s.watches[k], watch{w, gone})
	w.keys = append(w.keys, k)
}

// WatchedExpired tells whether the watcher is dirty, also because a watched key has expired since but is not removed
// yet. The shards of AddTo are held.
func (v *View) WatchedExpired(w *Watcher) bool {
	db := v.DB
	defer func() { v.DB = db }()
	for _, k := range w.keys {
		v.DB = k.db
		key := []byte(k.key)
		if !v.over(v.Find(key)) {
			v.Peek(key) // removes what is idle or partly expired, which makes the watcher dirty
			continue
		}
		_, s := v.locate(key)
		if list := s.watches[k]; !list[watcherIn(list, w)].gone {
			w.dirty.Store(true) // as in Redis, the key is left for the next command to remove
		}
	}
	return w.Dirty()
}

func watcherIn(list []watch, w *Watcher) int {
	return slices.IndexFunc(list, func(x watch) bool { return x.w == w })
}

// replaced tells the watchers of a key that its entry is now this one, the zero Entry if it does not exist. before
// tells whether the key existed.
func (v *View) replaced(list []watch, before bool, now Entry) {
	if !before && !now.Ok() {
		return
	}
	over := v.over(now)
	for i := range list {
		switch x := &list[i]; {
		case x.gone && !now.Ok():
			x.gone = false
		case x.gone && over:
		case !before && over:
			x.gone = true
		default:
			x.w.dirty.Store(true)
		}
	}
}

// Unwatch forgets the watcher's keys. The caller has locked the shards in held: their mutexes, not by a reservation.
func (ks *Keyspace) Unwatch(w *Watcher, held LockSet) {
	for _, k := range w.keys {
		_, sh := locate([]byte(k.key))
		s := &ks.shards[sh]
		lock := held.mask>>sh&1 == 0
		switch {
		case !lock:
		case held.mask == 0:
			ks.enter(s)
		default: // the gate does not matter: whoever closes it waits for the held shards
			s.mu.Lock()
		}
		list := s.watches[k]
		if i := watcherIn(list, w); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if len(list) == 0 {
			delete(s.watches, k)
		} else {
			s.watches[k] = list
		}
		if lock {
			s.mu.Unlock()
		}
	}
	w.keys = w.keys[:0]
	w.dirty.Store(false)
}

// Changed reports that a key was changed to its watchers, to those who wait for it, and as an event. Every write
// calls it once for each key and event, after the change.
func (v *View) Changed(key []byte, class EventClass, event string) {
	v.Modified(key)
	v.Notify(class, event, key)
}

// Modified is Changed without an event.
func (v *View) Modified(key []byte) {
	v.modified(key)
	_, s := v.locate(key)
	v.markReady(s, key)
}

// Lessened is Changed for a change that those who wait for the key cannot use: entries were removed from a stream.
func (v *View) Lessened(key []byte, class EventClass, event string) {
	v.modified(key)
	v.Notify(class, event, key)
}

// Altered is Changed for a change that, as in Redis, is reported neither to those who wait for the key nor to its
// watchers: one of a stream's consumer groups.
func (v *View) Altered(key []byte, class EventClass, event string) {
	v.count(key)
	v.Notify(class, event, key)
}

// CountChange counts a change that is reported to nobody, such as an acknowledgement, or that has no key.
func (v *View) CountChange() { v.doubt = true; v.changes++; v.vague = true }

// SameChange says that the last two reported changes are one change, of two keys: Redis counts it once.
func (v *View) SameChange() { v.changes-- }

// count counts a change of a key, and counts the key's size anew.
func (v *View) count(key []byte) {
	v.doubt = true
	v.changes++
	if v.Logging() {
		v.keys = append(v.keys, changedKey{v.changes, v.DB, key})
	}
	if v.KS.Journal.Holds() {
		hash, shard := v.place(key)
		v.several = v.several || v.touched != 0 && v.one != hash
		v.touched |= 1 << shard
		v.one = hash
	}
	if v.objects {
		v.recount(key)
	}
}

func (v *View) modified(key []byte) {
	v.count(key)
	if v.KS.Tracking.Load() {
		v.KS.Touched(v, v.DB, key)
	}
	_, s := v.locate(key)
	if v.Reserved { // Unwatch takes only the mutex
		v.KS.enter(s)
		defer s.mu.Unlock()
	}
	if len(s.watches) != 0 {
		if list := s.watches[waitKey{v.DB, string(key)}]; list != nil {
			v.replaced(list, true, v.Find(key))
		}
	}
}

// Notify publishes an event without reporting that the key was changed.
func (v *View) Notify(class EventClass, event string, key []byte) {
	if v.KS.EventMask.Load()&uint32(class) != 0 && v.KS.Events != nil {
		v.KS.Events(v, v.DB, class, event, key)
	}
}
