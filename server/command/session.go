package command

// Session is the state of a connection: its database, transaction, user, names and wait. It belongs to the goroutine of its
// connection; fields that other goroutines read say so.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
)

// Session is the state of one client.
type Session struct {
	ID   int64
	Conn *resp.Conn // nil for the session of the server itself
	// Peer is the other side of a primary's session, which has no Conn but is shown to clients.
	Peer Peer
	// Created is in Unix microseconds.
	Created int64
	// LastUsed is the Unix time in microseconds of the last command; others read it.
	LastUsed atomic.Int64

	// mu guards what CLIENT LIST shows of other sessions.
	mu      sync.Mutex
	name    string
	libName string
	libVer  string

	user atomic.Pointer[User]

	lastCmd atomic.Pointer[Command]

	db            atomic.Int32
	namespace     atomic.Pointer[Namespace]
	Authenticated bool

	Multi Multi
	// Bonds mark the shards in which the session may hold locks that end with it.
	Bonds engine.Marks
	// NoTouch: CLIENT NO-TOUCH.
	NoTouch bool
	// Shown is what CLIENT LIST shows of the session to others.
	Shown Shown
	// Reply: CLIENT REPLY.
	Reply ReplyMode
	// Debugging: SCRIPT DEBUG makes the next EVAL a debugging session.
	Debugging bool
	// Closing: the connection ends after the reply.
	Closing bool
	// Aside says why the session's commands take the slow path, 0 if they do not.
	Aside Aside
	// Killed: another client closed the session; it runs no more commands.
	Killed atomic.Bool
	// Subscriptions counts channels and patterns. A RESP2 client with any may use only a few commands.
	Subscriptions atomic.Int32
	// Blocked is the session's wait, nil if there is none; others read it.
	Blocked atomic.Pointer[Wait]
	// Held is the LSN that must be confirmed before the replies in kept may leave.
	Held journal.LSN
	kept *Kept
	// Wrote is the LSN of the last effects of its commands.
	Wrote journal.LSN
	// Offset is the offset of these effects in the replication stream.
	Offset journal.LSN
	// Busy: a command of the session takes long, and another goroutine serves its loop.
	Busy atomic.Bool
	// behind are messages caused by the session's own command. They are sent right after its reply.
	behind []byte

	// Turn is the connection's turn in which the last commands ran, TurnBegan its beginning on the monotonic clock.
	Turn      uint64
	TurnBegan int64

	// extra is extraBytes when it was last counted.
	extra int64

	// slots holds the values that families store per session, by type.
	slots map[any]any
}

// Peer is a connection that the server has made.
type Peer interface {
	Addresses() (remote, local string)
	Drop()
}

// Addresses returns those of the session's connection.
func (s *Session) Addresses() (remote, local string) {
	if s.Conn == nil {
		return s.Peer.Addresses()
	}
	return s.Conn.RemoteAddr(), s.Conn.LocalAddr()
}

// Local tells whether the session's client is on this machine.
func (s *Session) Local() bool {
	return s.Conn == nil || !s.Conn.Remote().IsValid() || s.Conn.Remote().Addr().Unmap().IsLoopback()
}

// Shown are copies of a session's state for other goroutines.
type Shown struct {
	// Multi is 0 outside of a transaction, else the number of queued commands plus one. Words is the number of their
	// arguments, Conn.QueuedBytes their length. All are updated at the end of a batch.
	Multi, Words atomic.Int32
	// Watches is the number of watched keys; see Watching.
	Watches atomic.Int32
	// Proto is the protocol version, 0 for 2.
	Proto atomic.Int32
	// Redirect is the client ID that CLIENT TRACKING redirects to, plus one; 0: no tracking.
	Redirect atomic.Int64
	// Flags are more of the letters in CLIENT LIST.
	Flags atomic.Uint32
	// Subs, PSubs and SSubs count channels, patterns and shard channels. Prefixes counts those of CLIENT TRACKING.
	Subs, PSubs, SSubs, Prefixes atomic.Int32
	// SubBytes, WatchBytes and PrefixBytes are the total lengths of their names, NameBytes is that of the session's name.
	SubBytes, WatchBytes, PrefixBytes, NameBytes atomic.Int64
}

// Aside are reasons for the slow path.
type Aside uint8

const (
	// AsideSeen: the injector has seen the command that runs next, and delayed it.
	AsideSeen Aside = 1 << iota
	// AsideNamespace: the session is in a namespace.
	AsideNamespace
	// AsideReplica: the session is a replica's, which replies to nothing.
	AsideReplica
)

// Bits of Shown.Flags.
const (
	ShownNoEvict uint32 = 1 << iota
	ShownNoTouch
	ShownMonitor
	ShownTracking
	ShownTrackingBroken
	ShownTrackingBroadcast
	ShownUnixSocket
	ShownReplica
)

// Show sets or clears bits of Shown.Flags.
func (s *Session) Show(bits uint32, on bool) {
	if on {
		s.Shown.Flags.Or(bits)
	} else {
		s.Shown.Flags.And(^bits)
	}
}

// Multi is a transaction being put together.
type Multi struct {
	Active bool
	// Failed: a command was refused, so EXEC will be too.
	Failed  bool
	Queue   Queue // for EXEC
	Watcher engine.Watcher
}

// ShowMulti updates what other goroutines see of the transaction. Most batches do not change it.
func (s *Session) ShowMulti() {
	queued, words, bytes := int32(0), int32(0), int64(0)
	if s.Multi.Active {
		q := &s.Multi.Queue
		queued, words, bytes = int32(1+len(q.Requests)), q.Words, q.Bytes
	}
	if s.Shown.Multi.Load() != queued {
		s.Shown.Multi.Store(queued)
		s.Shown.Words.Store(words)
	}
	if s.Conn != nil && s.Conn.QueuedBytes.Load() != bytes {
		s.Conn.QueuedBytes.Store(bytes)
	}
}

// Watching returns the number of watched keys, for other goroutines. It is 0 once a watched key has changed: Redis drops the
// watches then, since EXEC will fail anyway.
func (s *Session) Watching() int32 {
	if s.Multi.Watcher.Dirty() {
		return 0
	}
	return s.Shown.Watches.Load()
}

// ReplyMode is the mode of CLIENT REPLY.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	ReplyOn ReplyMode = iota
	ReplyOff
	ReplySkipNext // the reply of the next command is dropped
	ReplySkip     // the reply of this command is dropped
)

// DB returns the selected database.
func (s *Session) DB() int { return int(s.db.Load()) }

// SetDB selects a database.
func (s *Session) SetDB(db int) { s.db.Store(int32(db)) }

// Namespace returns the session's namespace, nil if it has none. Any goroutine may call it.
func (s *Session) Namespace() *Namespace { return s.namespace.Load() }

// SetNamespace moves the session to database 0 of a namespace, or out of all namespaces if ns is nil. Only the session's
// goroutine calls it.
func (s *Session) SetNamespace(ns *Namespace) {
	s.namespace.Store(ns)
	s.SetDB(0)
	s.Aside &^= AsideNamespace
	if ns != nil {
		s.Aside |= AsideNamespace
	}
}

// Name returns the name from CLIENT SETNAME.
func (s *Session) Name() string { s.mu.Lock(); defer s.mu.Unlock(); return s.name }

// SetName sets the name that CLIENT LIST shows.
func (s *Session) SetName(name string) {
	s.mu.Lock()
	s.name = name
	s.mu.Unlock()
	s.Shown.NameBytes.Store(int64(len(name)))
}

// Lib returns the values from CLIENT SETINFO.
func (s *Session) Lib() (name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.libName, s.libVer
}

// SetLib sets the library's name or version.
func (s *Session) SetLib(name, version *string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != nil {
		s.libName = *name
	}
	if version != nil {
		s.libVer = *version
	}
}

// User returns the session's user, nil for the server's own session, which may do anything.
func (s *Session) User() *User { return s.user.Load() }

// SetUser sets the authenticated user.
func (s *Session) SetUser(u *User) { s.user.Store(u) }

// UserName returns the name of the user, empty if there is none.
func (s *Session) UserName() string {
	if u := s.user.Load(); u != nil {
		return u.Name
	}
	return ""
}

// LastCommand returns the session's last command, nil if there is none.
func (s *Session) LastCommand() *Command { return s.lastCmd.Load() }

// SetLastCommand sets the session's last command.
func (s *Session) SetLastCommand(cmd *Command) { s.lastCmd.Store(cmd) }

// Slot returns the value that a family stores in the session under a key. If it is missing and create is not nil, create makes
// it. Only the session's goroutine calls it.
func (s *Session) Slot(key any, create func() any) any {
	v, ok := s.slots[key]
	if !ok && create != nil {
		if s.slots == nil {
			s.slots = make(map[any]any)
		}
		v = create()
		s.slots[key] = v
	}
	return v
}

// Keep stores a value in the session under a key, and replaces the old one.
func (s *Session) Keep(key, value any) {
	if s.slots == nil {
		s.slots = make(map[any]any)
	}
	s.slots[key] = value
}

// Proto returns the session's protocol version, 2 or 3. Any goroutine may call it.
func (s *Session) Proto() int {
	if s.Shown.Proto.Load() == 3 {
		return 3
	}
	return 2
}

// SetProto sets the protocol version of the next replies.
func (s *Session) SetProto(version int) {
	s.Shown.Proto.Store(int32(version))
	if s.Conn != nil {
		s.Conn.Out.Proto = version
	}
}
