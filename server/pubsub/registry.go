package pubsub

// The subscribers of each name.

import (
	"slices"
	"sync"

	"github.com/limitkv/limitkv/server/command"
)

// Registry finds the sessions that subscribe to a name. A list is never changed in place, so it can be read without the lock
// afterwards.
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
		return // its namespace is gone with all subscriptions
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

// Listeners returns the sessions that subscribe to a name.
func (r *Registry) Listeners(name []byte) []*command.Session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[string(name)]
}

// Each calls fn for each name, with its subscribers.
func (r *Registry) Each(fn func(name string, list []*command.Session)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, list := range r.byName {
		fn(name, list)
	}
}

// Len returns how many names have subscribers.
func (r *Registry) Len() int { r.mu.RLock(); defer r.mu.RUnlock(); return len(r.byName) }
