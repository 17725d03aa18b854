// Package pubsub, internal to the server, holds the subscriptions to channels, patterns, shard channels and channels of
// keyspace events, and sends messages to the subscribers.
package pubsub

import (
	"github.com/limitkv/limitkv/server/clients"
	"github.com/limitkv/limitkv/server/command"
)

// Hub holds all subscriptions.
type Hub struct {
	s      *command.Server
	limits *clients.Limits
	worlds command.PerKeyspace[World]
}

// New makes the hub of a server.
func New(s *command.Server, limits *clients.Limits) *Hub {
	h := &Hub{s: s, limits: limits}
	h.worlds.Begin(s, (*World).init)
	main := &h.worlds.Main
	s.Mutexes = append(s.Mutexes, &main.Plain.mu, &main.Patterns.mu, &main.Shard.mu)
	s.Keyspace.Events = h.keyspaceEvent
	return h
}

// In returns the subscriptions in the namespace of a command.
func (h *Hub) In(c *command.Ctx) *World { return h.worlds.Of(c.KS) }

// World holds the subscriptions in one namespace.
type World struct {
	// Shard channels are separate from the others, as in Redis.
	Plain, Patterns, Shard Registry
}

func (w *World) init() {
	for _, r := range []*Registry{&w.Plain, &w.Patterns, &w.Shard} {
		r.init()
	}
}

// Counts returns how many channels, patterns and shard channels have subscribers.
func (h *Hub) Counts() (channels, patterns, shardChannels int) {
	for _, w := range h.worlds.All() {
		channels += w.Plain.Len()
		patterns += w.Patterns.Len()
		shardChannels += w.Shard.Len()
	}
	return channels, patterns, shardChannels
}

// Each calls fn for each channel and pattern, with its subscribers.
func (h *Hub) Each(fn func(name string, pattern bool, list []*command.Session)) {
	for _, w := range h.worlds.All() {
		for k := range Kinds {
			w.registry(k).Each(func(name string, list []*command.Session) { fn(name, k == Pattern, list) })
		}
	}
}

// Kind is the kind of a subscription.
type Kind uint8

const (
	Plain Kind = iota
	Pattern
	Shard
	Kinds
)

func (w *World) registry(k Kind) *Registry {
	return [Kinds]*Registry{&w.Plain, &w.Patterns, &w.Shard}[k]
}

// world returns the subscriptions in a session's namespace.
func (h *Hub) world(s *command.Session) *World { return h.worlds.Of(h.s.KeyspaceOf(s)) }

// Subscriptions are those of a session, by kind. Only the session's goroutine uses them.
type Subscriptions [Kinds]map[string]struct{}

type slotKey struct{}

// Of returns a session's subscriptions.
func Of(s *command.Session) *Subscriptions {
	return s.Slot(slotKey{}, func() any { return &Subscriptions{} }).(*Subscriptions)
}

// Count returns the number in the reply for a kind: of shard channels, or of channels and patterns.
func (s *Subscriptions) Count(k Kind) int {
	if k == Shard {
		return len(s[Shard])
	}
	return len(s[Plain]) + len(s[Pattern])
}

func (s *Subscriptions) total() int {
	return len(s[Plain]) + len(s[Pattern]) + len(s[Shard])
}

// Join subscribes a session to a name, unless it is subscribed. mine are the session's subscriptions.
func (h *Hub) Join(s *command.Session, mine *Subscriptions, k Kind, name string) {
	if _, ok := mine[k][name]; ok {
		return
	}
	if mine[k] == nil {
		mine[k] = make(map[string]struct{})
	}
	mine[k][name] = struct{}{}
	s.Shown.SubBytes.Add(int64(len(name)))
	h.world(s).registry(k).add(name, s)
	h.counted(s, mine)
}

// counted updates the numbers of subscriptions. The first one and the end of the last one change the class of the connection,
// and so its output limits.
func (h *Hub) counted(s *command.Session, mine *Subscriptions) {
	n := int32(mine.total())
	shown := &s.Shown
	shown.Subs.Store(int32(len(mine[Plain])))
	shown.PSubs.Store(int32(len(mine[Pattern])))
	shown.SSubs.Store(int32(len(mine[Shard])))
	if before := s.Subscriptions.Swap(n); (before == 0) != (n == 0) && s.Conn != nil {
		s.Conn.Post(func() { h.limits.Limit(s) })
	}
}

// Leave ends a subscription.
func (h *Hub) Leave(s *command.Session, mine *Subscriptions, k Kind, name string) {
	if _, ok := mine[k][name]; !ok {
		return
	}
	delete(mine[k], name)
	s.Shown.SubBytes.Add(-int64(len(name)))
	h.world(s).registry(k).remove(name, s)
	h.counted(s, mine)
}

// LeaveAll ends all subscriptions of a session.
func (h *Hub) LeaveAll(s *command.Session) {
	if s.Subscriptions.Load() == 0 {
		return
	}
	mine := Of(s)
	for k := range Kinds {
		for name := range mine[k] {
			h.Leave(s, mine, k, name)
		}
	}
}
