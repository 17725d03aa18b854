package command

// How much memory is in use, as maxmemory counts it: the keys, which are counted
// exactly, and the rest, which is looked at now and then; and what the clients
// take of it, as maxmemory-clients does.

// FreedPieces is how many pieces of memory must have been let go for that to be
// told to who looks after the process's memory.
const FreedPieces = 1 << 16

// otherMemoryMicros is how old a look at the rest may be for a command that asks
// whether there is room.
const otherMemoryMicros = 100_000

// MeasureMemory returns what is used besides the keys, and altogether, in bytes.
func (s *Server) MeasureMemory() (other, used int64) {
	for _, of := range s.OtherMemory {
		other += of()
	}
	s.otherBytes.Store(other)
	return other, other + s.Keyspace.KeysBytes()
}

// UsedMemory is what is used at a time of the server's clock, in bytes. While that
// clock stands, the rest is only looked at by MeasureMemory.
func (s *Server) UsedMemory(nowMicros int64) int64 {
	last := s.otherLooked.Load()
	if age := nowMicros - last; (age > otherMemoryMicros || age < 0) && s.otherLooked.CompareAndSwap(last, nowMicros) {
		_, used := s.MeasureMemory()
		return used
	}
	return s.otherBytes.Load() + s.Keyspace.KeysBytes()
}

// What a client takes besides its buffers, roughly, in bytes: the connection and
// its session, each command that it has queued, each key that it watches, and each
// channel, pattern or prefix that it listens to. How long their names are comes on top, and so do the arguments of a command that
// waits, which are copies.
const (
	sessionBytes   = 1500
	queuedBytes    = 120
	watchBytes     = 120
	subscribeBytes = 160
)

// Bytes is what the session takes. The stream that a replica has yet to be sent is not its own.
func (s *Session) Bytes() int64 {
	return s.bufferBytes() + s.extraBytes()
}

func (s *Session) bufferBytes() int64 {
	return sessionBytes + s.Conn.QueryBytes() + s.Conn.OutputBytes() - s.Conn.SharedBytes()
}

func (s *Session) extraBytes() int64 {
	shown := &s.Shown
	waits := int64(0)
	if w := s.Blocked.Load(); w != nil {
		waits = w.bytes
	}
	names := shown.SubBytes.Load() + shown.WatchBytes.Load() + shown.PrefixBytes.Load() + shown.NameBytes.Load()
	return waits + names + s.Conn.QueuedBytes.Load() + int64(shown.Multi.Load())*queuedBytes + int64(shown.Watches.Load())*watchBytes +
		int64(shown.Subs.Load()+shown.PSubs.Load()+shown.SSubs.Load()+shown.Prefixes.Load())*subscribeBytes
}

// counted is what is part of ClientBytes for the session.
func (s *Session) counted() int64 {
	return s.bufferBytes() + s.extra
}

// spared tells that the session is not ended for maxmemory-clients.
func (s *Session) spared() bool { return s.Shown.Flags.Load()&ShownNoEvict != 0 }

// ClientArrived begins to count what a session takes, ClientGone ends it.
func (s *Server) ClientArrived(sess *Session) {
	s.clientGrew(sess, sess.counted())
	sess.Conn.Buffered = func(bytes int64) { s.clientGrew(sess, bytes) }
}

// ClientGone: see ClientArrived.
func (s *Server) ClientGone(sess *Session) {
	sess.Conn.Buffered = nil
	s.SpareClient(sess, false)
	s.ClientBytes.Add(-sess.counted())
}

// SpareClient sets or ends that a session is not to be ended for
// maxmemory-clients and does not count for it. For its own goroutine.
func (s *Server) SpareClient(sess *Session, on bool) {
	if on == sess.spared() {
		return
	}
	sess.Show(ShownNoEvict, on)
	if on {
		s.sparedBytes.Add(sess.counted())
	} else {
		s.sparedBytes.Add(-sess.counted())
	}
}

func (s *Server) clientGrew(sess *Session, bytes int64) {
	s.ClientBytes.Add(bytes)
	if sess.spared() {
		s.sparedBytes.Add(bytes)
	} else if bytes > 0 && s.ClientsTakeTooMuch(0) {
		s.Host.EvictClientsSoon()
	}
}

// ClientsTakeTooMuch tells whether they take more than maxmemory-clients, or would
// with so many bytes more.
func (s *Server) ClientsTakeTooMuch(more int64) bool {
	limit := s.MaxClientBytes.Load()
	return limit != 0 && s.ClientBytes.Load()-s.sparedBytes.Load()+more > limit
}

// ClientServed counts what a session's commands have changed of what it takes.
func (s *Server) ClientServed(sess *Session) {
	sess.ShowMulti()
	if now := sess.extraBytes(); now != sess.extra {
		before := sess.extra
		sess.extra = now
		s.clientGrew(sess, now-before)
	}
}

// LetGo counts objects that Redis would free later, and tells of the pieces of
// memory if they are many: the Go runtime waits until the heap has grown by as
// much as there is, which may be never where nothing is written.
func (s *Server) LetGo(objects, pieces int) {
	s.Stats.LazyFreed.Add(int64(objects))
	if s.letGo.Add(int64(pieces)) < FreedPieces {
		return
	}
	s.letGo.Store(0)
	s.Host.Freed()
}
