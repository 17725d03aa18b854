package engine

// WATCH, and what every change of a key tells.

import (
	"slices"
	"sync/atomic"
)

// Watcher is told when one of the keys it watches changes.
type Watcher struct {
	dirty atomic.Bool
	keys  []waitKey
}

// watch is one who watches a key. gone: it does not count that the key goes, whose time was over already.
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

// Watch begins to watch a key, whose shard is held. As in Redis, a key whose time is over is left for the next command to
// remove, and that is no change.
func (v *View) Watch(w *Watcher, key []byte) {
	k := waitKey{v.DB, string(key)}
	if slices.Contains(w.keys, k) {
		return
	}
	gone := v.over(v.Find(key))
	if !gone {
		v.Peek(key) // what is idle or partly expired goes
	}
	v.doubt = true
	_, s := v.locate(key)
	if s.watches == nil {
		s.watches = make(map[waitKey][]watch)
	}
	s.watches[k] = append(s.watches[k], watch{w, gone})
	w.keys = append(w.keys, k)
}

// WatchedExpired tells whether the time of a watched key was over since, though it has not been removed yet. The shards of
// AddTo are held.
func (v *View) WatchedExpired(w *Watcher) bool {
	db := v.DB
	defer func() { v.DB = db }()
	for _, k := range w.keys {
		v.DB = k.db
		key := []byte(k.key)
		if !v.over(v.Find(key)) {
			v.Peek(key) // what is idle or partly expired goes, which makes the watcher dirty
			continue
		}
		_, s := v.locate(key)
		if list := s.watches[k]; !list[watcherIn(list, w)].gone {
			w.dirty.Store(true) // as in Redis, it is left for the next one to remove
		}
	}
	return w.Dirty()
}

func watcherIn(list []watch, w *Watcher) int {
	return slices.IndexFunc(list, func(x watch) bool { return x.w == w })
}

// replaced tells those who watch a key that it is what now is, the zero Entry if it is not there. before tells whether it
// was there.
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

// Unwatch forgets the watcher's keys, of which those in held are locked: locked, not
// reserved.
func (ks *Keyspace) Unwatch(w *Watcher, held LockSet) {
	for _, k := range w.keys {
		_, sh := locate([]byte(k.key))
		s := &ks.shards[sh]
		lock := held.mask>>sh&1 == 0
		switch {
		case !lock:
		case held.mask == 0:
			ks.enter(s)
		default: // who waits for all shards waits for those that are held
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

// Changed tells that a key was changed: those who watch it, those who wait
// for it, and whoever wants the event. Every write calls it once for each key
// and event, after the change.
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

// Lessened is Changed for a change that gives nothing to those who wait for the
// key: entries were taken out of a stream.
func (v *View) Lessened(key []byte, class EventClass, event string) {
	v.modified(key)
	v.Notify(class, event, key)
}

// Altered is Changed for a change that neither those who wait for the key nor
// those who watch it are told of, as in Redis: of a stream's consumer groups.
func (v *View) Altered(key []byte, class EventClass, event string) {
	v.count(key)
	v.Notify(class, event, key)
}

// CountChange counts a change that nobody is told of, such as an acknowledgement, or
// of which there is no key.
func (v *View) CountChange() { v.doubt = true; v.changes++; v.vague = true }

// SameChange says that the last two changes that were told are one, of two keys:
// Redis counts it once.
func (v *View) SameChange() { v.changes-- }

// count counts a change of a key, and the key's size anew.
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
	if v.Reserved { // who stops to watch takes the lock, and no more
		v.KS.enter(s)
		defer s.mu.Unlock()
	}
	if len(s.watches) != 0 {
		if list := s.watches[waitKey{v.DB, string(key)}]; list != nil {
			v.replaced(list, true, v.Find(key))
		}
	}
}

// Notify tells an event without saying that the key was changed.
func (v *View) Notify(class EventClass, event string, key []byte) {
	if v.KS.EventMask.Load()&uint32(class) != 0 && v.KS.Events != nil {
		v.KS.Events(v, v.DB, class, event, key)
	}
}
