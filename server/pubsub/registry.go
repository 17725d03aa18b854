package pubsub

// Who listens to what.

import (
	"slices"
	"sync"

	"github.com/limitkv/limitkv/server/command"
)

// Registry finds the sessions that listen to a name. Lists are never changed
// in place, so one that was taken under the lock may be walked without it.
type Registry struct {
	mu     sync.RWMutex
	byName map[string][]*command.Session
}

func (r *Registry) init() { r.byName = make(map[string][]*command.Session) }

func (r *Registry) add(name string, s *command.Session) {
	r.mu.Lock()
	r.byName[name] = append(slices.Clip(r.byName[name]), s)
	r.mu.Unlock()
}

func (r *Registry) remove(name string, s *command.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.byName[name]
	if !slices.Contains(list, s) {
		return // its namespace is gone, and with it what was listened to
	}
	if len(list) == 1 {
		delete(r.byName, name)
		return
	}
	rest := make([]*command.Session, 0, len(list)-1)
	for _, x := range list {
		if x != s {
			rest = append(rest, x)
		}
	}
	r.byName[name] = rest
}

// Listeners are the sessions that listen to a name.
func (r *Registry) Listeners(name []byte) []*command.Session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[string(name)]
}

// Each calls fn with every name and its listeners.
func (r *Registry) Each(fn func(name string, list []*command.Session)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, list := range r.byName {
		fn(name, list)
	}
}

// Len is how many names are listened to.
func (r *Registry) Len() int { r.mu.RLock(); defer r.mu.RUnlock(); return len(r.byName) }
