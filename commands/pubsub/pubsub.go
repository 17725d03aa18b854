// Package pubsub, internal to the server, is the family of channels: plain ones, patterns, those of a
// shard, and the channels of keyspace events.
package pubsub

import (
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

type family struct {
	s      *server.Server
	worlds command.PerKeyspace[world]
}

// world is what is listened to in one namespace.
type world struct {
	// shard channels are apart from the others, as in Redis.
	plain, patterns, shard registry
}

func (w *world) init() {
	for _, r := range []*registry{&w.plain, &w.patterns, &w.shard} {
		r.init()
	}
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	f.worlds.Begin(s.Server, (*world).init)
	main := &f.worlds.Main
	s.Mutexes = append(s.Mutexes, &main.plain.mu, &main.patterns.mu, &main.shard.mu)
	s.OnClose = append(s.OnClose, f.leaveAll)
	s.OnReset = append(s.OnReset, func(c *command.Ctx) { f.leaveAll(c.Session) })
	s.Keyspace.Events = f.keyspaceEvent
	s.PubSub = f
	return []*command.Command{
		f.subscribeRow("subscribe", "2.0.0", "channel:string...", "Listens to channels.", kindPlain),
		f.subscribeRow("psubscribe", "2.0.0", "pattern...", "Listens to channels whose names match patterns.", kindPattern),
		f.subscribeRow("ssubscribe", "7.0.0", "shardchannel:string...", "Listens to shard channels.", kindShard),
		f.unsubscribeRow("unsubscribe", "2.0.0", "[channel:string...]", "Stops listening to channels, to all if none is named.", kindPlain),
		f.unsubscribeRow("punsubscribe", "2.0.0", "[pattern...]", "Stops listening to patterns, to all if none is named.", kindPattern),
		f.unsubscribeRow("sunsubscribe", "7.0.0", "[shardchannel:string...]", "Stops listening to shard channels, to all if none is named.", kindShard),
		f.publishRow(), f.spublishRow(), f.pubsubRow(),
	}
}

// Counts are how many channels, patterns and shard channels are listened to.
func (f *family) Counts() (channels, patterns, shardChannels int) {
	for _, w := range f.worlds.All() {
		channels += w.plain.len()
		patterns += w.patterns.len()
		shardChannels += w.shard.len()
	}
	return channels, patterns, shardChannels
}

// Each calls fn with all channels and patterns and who listens.
func (f *family) Each(fn func(name string, pattern bool, list []*command.Session)) {
	for _, w := range f.worlds.All() {
		for k := range kinds {
			w.registry(k).each(func(name string, list []*command.Session) { fn(name, k == kindPattern, list) })
		}
	}
}

var pubsubACL = []string{"pubsub"}

// kind is which world a subscription belongs to.
type kind uint8

const (
	kindPlain kind = iota
	kindPattern
	kindShard
	kinds
)

// words are how replies name joining and leaving.
var words = [kinds][2]string{
	{"subscribe", "unsubscribe"},
	{"psubscribe", "punsubscribe"},
	{"ssubscribe", "sunsubscribe"},
}

func (w *world) registry(k kind) *registry {
	return [kinds]*registry{&w.plain, &w.patterns, &w.shard}[k]
}

// world is a session's.
func (f *family) world(s *command.Session) *world { return f.worlds.Of(f.s.KeyspaceOf(s)) }

// subscriptions are a session's, by kind. The session's goroutine owns them.
type subscriptions [kinds]map[string]struct{}

type slotKey struct{}

func of(s *command.Session) *subscriptions {
	return s.Slot(slotKey{}, func() any { return &subscriptions{} }).(*subscriptions)
}

// count is what a reply of the kind counts: shard channels alone, or channels
// and patterns.
func (s *subscriptions) count(k kind) int {
	if k == kindShard {
		return len(s[kindShard])
	}
	return len(s[kindPlain]) + len(s[kindPattern])
}

func (s *subscriptions) total() int {
	return len(s[kindPlain]) + len(s[kindPattern]) + len(s[kindShard])
}

const subscribeFlags = command.PubSub | command.Pushes | command.NoScript | command.Loading | command.Stale | command.InSubscribed

func (f *family) subscribeRow(name, since, syntax, summary string, k kind) *command.Command {
	c := &command.Command{
		Name: name, Arity: -2, Group: command.GroupPubSub, Since: since,
		Flags:      subscribeFlags,
		ACL:        pubsubACL,
		Summary:    summary,
		Complexity: "O(N) in the number of channels",
		Syntax:     syntax,
		Channels:   command.Channels{First: 1, Last: -1, Pattern: k == kindPattern},
		Run: func(c *command.Ctx) {
			if k == kindShard && c.Exec { // the others may, for those who came before the rule
				c.Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
				return
			}
			mine := of(c.Session)
			for _, name := range c.Args[1:] {
				f.join(c.Session, mine, k, string(name))
				f.confirm(c, words[k][0], name, mine.count(k))
			}
		},
	}
	if k == kindShard {
		c.Keys = []command.KeySpec{command.KeyRange(1, -1, 1, command.NotKey)}
	}
	return c
}

func (f *family) unsubscribeRow(name, since, syntax, summary string, k kind) *command.Command {
	c := &command.Command{
		Name: name, Arity: -1, Group: command.GroupPubSub, Since: since,
		Flags:      subscribeFlags,
		ACL:        pubsubACL,
		Summary:    summary,
		Complexity: "O(N) in the number of channels",
		Syntax:     syntax,
		Run: func(c *command.Ctx) {
			mine := of(c.Session)
			names := c.Args[1:]
			if len(names) == 0 {
				for name := range mine[k] {
					names = append(names, []byte(name))
				}
				if len(names) == 0 {
					f.confirm(c, words[k][1], nil, mine.count(k))
					return
				}
			}
			for _, name := range names {
				f.leave(c.Session, mine, k, string(name))
				f.confirm(c, words[k][1], name, mine.count(k))
			}
		},
	}
	if k == kindShard {
		c.Keys = []command.KeySpec{command.KeyRange(1, -1, 1, command.NotKey)}
	}
	return c
}

// confirm replies to joining or leaving one channel.
func (f *family) confirm(c *command.Ctx, word string, name []byte, count int) {
	c.Push(3)
	c.BulkString(word)
	if name == nil {
		c.Null()
	} else {
		c.Bulk(name)
	}
	c.Int(int64(count))
}

func (f *family) join(s *command.Session, mine *subscriptions, k kind, name string) {
	if _, ok := mine[k][name]; ok {
		return
	}
	if mine[k] == nil {
		mine[k] = make(map[string]struct{})
	}
	mine[k][name] = struct{}{}
	s.Shown.SubBytes.Add(int64(len(name)))
	f.world(s).registry(k).add(name, s)
	f.counted(s, mine)
}

// counted notes how many subscriptions there are. With the first one, and
// without the last, the connection is of another class, which may leave unread
// more or less.
func (f *family) counted(s *command.Session, mine *subscriptions) {
	n := int32(mine.total())
	shown := &s.Shown
	shown.Subs.Store(int32(len(mine[kindPlain])))
	shown.PSubs.Store(int32(len(mine[kindPattern])))
	shown.SSubs.Store(int32(len(mine[kindShard])))
	if before := s.Subscriptions.Swap(n); (before == 0) != (n == 0) && s.Conn != nil {
		s.Conn.Post(func() { f.s.Connections.Limit(s) })
	}
}

func (f *family) leave(s *command.Session, mine *subscriptions, k kind, name string) {
	if _, ok := mine[k][name]; !ok {
		return
	}
	delete(mine[k], name)
	s.Shown.SubBytes.Add(-int64(len(name)))
	f.world(s).registry(k).remove(name, s)
	f.counted(s, mine)
}

// leaveAll ends all subscriptions of a session.
func (f *family) leaveAll(s *command.Session) {
	if s.Subscriptions.Load() == 0 {
		return
	}
	mine := of(s)
	for k := range kinds {
		for name := range mine[k] {
			f.leave(s, mine, k, name)
		}
	}
}
