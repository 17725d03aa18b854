// Package pubsub, internal to the server, is who listens to channels – plain ones, patterns, those of a shard, and the channels
// of keyspace events – and what becomes of messages.
package pubsub

import (
	"github.com/limitkv/limitkv/server/clients"
	"github.com/limitkv/limitkv/server/command"
)

// Hub knows who listens.
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

// In is what is listened to in the namespace of a command.
func (h *Hub) In(c *command.Ctx) *World { return h.worlds.Of(c.KS) }

// World is what is listened to in one namespace.
type World struct {
	// shard channels are apart from the others, as in Redis.
	Plain, Patterns, Shard Registry
}

func (w *World) init() {
	for _, r := range []*Registry{&w.Plain, &w.Patterns, &w.Shard} {
		r.init()
	}
}

// Counts are how many channels, patterns and shard channels are listened to.
func (h *Hub) Counts() (channels, patterns, shardChannels int) {
	for _, w := range h.worlds.All() {
		channels += w.Plain.Len()
		patterns += w.Patterns.Len()
		shardChannels += w.Shard.Len()
	}
	return channels, patterns, shardChannels
}

// Each calls fn with all channels and patterns and who listens.
func (h *Hub) Each(fn func(name string, pattern bool, list []*command.Session)) {
	for _, w := range h.worlds.All() {
		for k := range Kinds {
			w.registry(k).Each(func(name string, list []*command.Session) { fn(name, k == Pattern, list) })
		}
	}
}

// Kind is which world a subscription belongs to.
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

// world is a session's.
func (h *Hub) world(s *command.Session) *World { return h.worlds.Of(h.s.KeyspaceOf(s)) }

// Subscriptions are a session's, by kind. The session's goroutine owns them.
type Subscriptions [Kinds]map[string]struct{}

type slotKey struct{}

// Of are a session's subscriptions.
func Of(s *command.Session) *Subscriptions {
	return s.Slot(slotKey{}, func() any { return &Subscriptions{} }).(*Subscriptions)
}

// Count is what a reply of the kind counts: shard channels alone, or channels
// and patterns.
func (s *Subscriptions) Count(k Kind) int {
	if k == Shard {
		return len(s[Shard])
	}
	return len(s[Plain]) + len(s[Pattern])
}

func (s *Subscriptions) total() int {
	return len(s[Plain]) + len(s[Pattern]) + len(s[Shard])
}

// Join has a session listen to a name, if it does not yet. mine are its subscriptions.
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

// counted notes how many subscriptions there are. With the first one, and
// without the last, the connection is of another class, which may leave unread
// more or less.
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

// Leave ends that.
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
