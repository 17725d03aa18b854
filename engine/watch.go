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

// Watch begins to watch a key, whose shard is held.
func (v *View) Watch(w *Watcher, key []byte) {
	k := waitKey{v.DB, string(key)}
	if slices.Contains(w.keys, k) {
		return
	}
	v.Peek(key) // what has expired is gone before it is watched
	v.doubt = true
	_, s := v.locate(key)
	if s.watches == nil {
		s.watches = make(map[waitKey][]*Watcher)
	}
	s.watches[k] = append(s.watches[k], w)
	w.keys = append(w.keys, k)
}

// WatchedExpired tells whether a watched key has passed its deadline without
// having been removed yet. The shards of AddTo are held.
func (v *View) WatchedExpired(w *Watcher) bool {
	db := v.DB
	defer func() { v.DB = db }()
	for _, k := range w.keys {
		v.DB = k.db
		if e := v.Find([]byte(k.key)); e.Ok() && e.Deadline() != 0 && e.Deadline() < v.Now/1000 && v.Past(e.Deadline()) {
			w.dirty.Store(true) // as in Redis, it is left for the next one to remove
			continue
		}
		v.Peek([]byte(k.key)) // what is idle or partly expired goes, which makes the watcher dirty
	}
	return w.Dirty()
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
			s.taken.Lock()
		}
		list := s.watches[k]
		if i := slices.Index(list, w); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if len(list) == 0 {
			delete(s.watches, k)
		} else {
			s.watches[k] = list
		}
		if lock {
			s.taken.Unlock()
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

// CountChange counts a change that nobody is told of: an acknowledgement.
func (v *View) CountChange() { v.doubt = true; v.changes++ }

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
		defer s.taken.Unlock()
	}
	if len(s.watches) != 0 {
		for _, w := range s.watches[waitKey{v.DB, string(key)}] {
			w.dirty.Store(true)
		}
	}
}

// Notify tells an event without saying that the key was changed.
func (v *View) Notify(class EventClass, event string, key []byte) {
	if v.KS.EventMask.Load()&uint32(class) != 0 && v.KS.Events != nil {
		v.KS.Events(v, v.DB, class, event, key)
	}
}

// TakeChanges returns how often Changed was called since the last time.
func (v *View) TakeChanges() int64 {
	n := v.changes
	v.changes, v.told = 0, 0
	return n
}
