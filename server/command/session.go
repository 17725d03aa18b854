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
	// Debugging: SCRIPT DEBUG asked for EVAL to be a debugging session.
	Debugging bool
	// Closing: the connection ends after the reply.
	Closing bool
	// Aside tells why the session's commands take the slow path, 0 if they do not.
	Aside Aside
	// Killed: another client ended the session; it runs nothing more.
	Killed atomic.Bool
	// Subscriptions counts channels and patterns; a RESP2 client with any may
	// use few commands.
	Subscriptions atomic.Int32
	// Blocked is what the client waits for, nil if nothing; others read it.
	Blocked atomic.Pointer[Wait]
	// Held is the LSN that must be confirmed before the replies in kept may leave.
	Held journal.LSN
	kept *Kept
	// Wrote is the LSN of the last effects of its commands.
	Wrote journal.LSN
	// Offset is the same in the replicas' stream.
	Offset journal.LSN
	// Busy: a command of the session takes long, and another goroutine serves its loop.
	Busy atomic.Bool
	// behind are messages about what the session's own command did. They follow the command's reply directly.
	behind []byte

	// Turn is the connection's turn in which commands ran last, TurnBegan its beginning on the monotonic clock.
	Turn      uint64
	TurnBegan int64

	// extra is what was last counted of extraBytes.
	extra int64

	// Slots is where families keep what they have per session, by type.
	slots map[any]any
}

// Peer is a connection that the server has made.
type Peer interface {
	Addresses() (remote, local string)
	Drop()
}

// Addresses are those of the session's connection.
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
	// Multi is 0 outside of a transaction, else one more than the commands
	// that are queued; Conn.QueuedBytes is how long their arguments are, Words how many.
	// They are as of the end of a batch.
	Multi, Words atomic.Int32
	// Watches is how many keys are watched; see Watching.
	Watches atomic.Int32
	// Proto is the protocol version, 0 for 2.
	Proto atomic.Int32
	// Redirect is one more than the client that CLIENT TRACKING redirects to.
	Redirect atomic.Int64
	// Flags are more of the letters that CLIENT LIST shows.
	Flags atomic.Uint32
	// Subs, PSubs and SSubs count channels, patterns and shard channels, Prefixes
	// those of CLIENT TRACKING.
	Subs, PSubs, SSubs, Prefixes atomic.Int32
	// SubBytes, WatchBytes, PrefixBytes and NameBytes are how long the names of these, and the session's own, are.
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
	Queue   Queue // what waits for EXEC
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

// Watching is how many keys are watched, for other goroutines. It is 0 once a watched key has changed: then Redis drops the
// watches, since EXEC will fail anyway.
func (s *Session) Watching() int32 {
	if s.Multi.Watcher.Dirty() {
		return 0
	}
	return s.Shown.Watches.Load()
}

// ReplyMode is what CLIENT REPLY sets.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	ReplyOn ReplyMode = iota
	ReplyOff
	ReplySkipNext // the reply of the next command is dropped
	ReplySkip     // the reply of this command is dropped
)

// DB is the selected database.
func (s *Session) DB() int { return int(s.db.Load()) }

// SetDB selects a database.
func (s *Session) SetDB(db int) { s.db.Store(int32(db)) }

// Namespace is where the session's keys are, nil outside of all namespaces.
// Callable from anywhere.
func (s *Session) Namespace() *Namespace { return s.namespace.Load() }

// SetNamespace takes the session to database 0 of a namespace, or out of all if
// ns is nil. For the session's own goroutine.
func (s *Session) SetNamespace(ns *Namespace) {
	s.namespace.Store(ns)
	s.SetDB(0)
	s.Aside &^= AsideNamespace
	if ns != nil {
		s.Aside |= AsideNamespace
	}
}

// Name is what CLIENT SETNAME set.
func (s *Session) Name() string { s.mu.Lock(); defer s.mu.Unlock(); return s.name }

// SetName sets the name that CLIENT LIST shows.
func (s *Session) SetName(name string) {
	s.mu.Lock()
	s.name = name
	s.mu.Unlock()
	s.Shown.NameBytes.Store(int64(len(name)))
}

// Lib is what CLIENT SETINFO set.
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

// User is whose session it is; nil for the server's own, which may do anything.
func (s *Session) User() *User { return s.user.Load() }

// SetUser sets the authenticated user.
func (s *Session) SetUser(u *User) { s.user.Store(u) }

// UserName is the name of the user, empty if there is none.
func (s *Session) UserName() string {
	if u := s.user.Load(); u != nil {
		return u.Name
	}
	return ""
}

// LastCommand is the command that the session ran last, nil if none.
func (s *Session) LastCommand() *Command { return s.lastCmd.Load() }

// SetLastCommand notes the command that runs.
func (s *Session) SetLastCommand(cmd *Command) { s.lastCmd.Store(cmd) }

// Slot returns what a family keeps under a key in the session, making it with
// create if it is missing. It must be called by the session's own goroutine.
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

// Keep keeps a value under a key in the session, in place of what is there.
func (s *Session) Keep(key, value any) {
	if s.slots == nil {
		s.slots = make(map[any]any)
	}
	s.slots[key] = value
}

// Proto is the session's protocol version, 2 or 3. Callable from anywhere.
func (s *Session) Proto() int {
	if s.Shown.Proto.Load() == 3 {
		return 3
	}
	return 2
}

// SetProto sets the protocol version of what is replied from now on.
func (s *Session) SetProto(version int) {
	s.Shown.Proto.Store(int32(version))
	if s.Conn != nil {
		s.Conn.Out.Proto = version
	}
}
