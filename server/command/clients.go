package command

// The registry of connected clients.

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Clients is the registry of sessions.
type Clients struct {
	mu   sync.Mutex
	byID map[int64]*Session
	next atomic.Int64
	// Primary is the session of the primary that this server follows, nil if there is none. It is not a client.
	Primary atomic.Pointer[Session]
}

// NewClients makes an empty registry.
func NewClients() *Clients { return &Clients{byID: make(map[int64]*Session)} }

// NextID returns a new client ID.
func (c *Clients) NextID() int64 { return c.next.Add(1) }

// Add registers a session.
func (c *Clients) Add(s *Session) { c.mu.Lock(); c.byID[s.ID] = s; c.mu.Unlock() }

// Remove unregisters a session.
func (c *Clients) Remove(s *Session) { c.mu.Lock(); delete(c.byID, s.ID); c.mu.Unlock() }

// Len is the number of clients.
func (c *Clients) Len() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.byID) }

// Get finds a client by id.
func (c *Clients) Get(id int64) *Session { c.mu.Lock(); defer c.mu.Unlock(); return c.byID[id] }

// All lists the clients in order of ID.
func (c *Clients) All() []*Session {
	c.mu.Lock()
	list := make([]*Session, 0, len(c.byID))
	for _, s := range c.byID {
		list = append(list, s)
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b *Session) int { return int(a.ID - b.ID) })
	return list
}
