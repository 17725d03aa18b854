package command

// Memory in use, as maxmemory counts it: the keys, which are counted exactly, and all else, which is measured from time to
// time. Also the memory of clients, as maxmemory-clients counts it.

// FreedPieces is after how many freed pieces of memory Host.Freed is called.
const FreedPieces = 1 << 16

// otherMemoryMicros is how old the measurement of all else may be when a command checks for memory.
const otherMemoryMicros = 100_000

// MeasureMemory returns the memory used besides the keys, and in total, in bytes.
func (s *Server) MeasureMemory() (other, used int64) {
	for _, of := range s.OtherMemory {
		other += of()
	}
	s.otherBytes.Store(other)
	return other, other + s.Keyspace.KeysBytes()
}

// UsedMemory returns the memory in use at a time of the server's clock, in bytes. While that clock is frozen, only
// MeasureMemory measures the memory besides the keys.
func (s *Server) UsedMemory(nowMicros int64) int64 {
	last := s.otherLooked.Load()
	if age := nowMicros - last; (age > otherMemoryMicros || age < 0) && s.otherLooked.CompareAndSwap(last, nowMicros) {
		_, used := s.MeasureMemory()
		return used
	}
	return s.otherBytes.Load() + s.Keyspace.KeysBytes()
}

// The approximate memory of a client besides its buffers, in bytes: its connection and session, each queued command, each
// watched key, and each channel, pattern or prefix. The lengths of their names are added, and so are the arguments of a
// command that waits, which are copies.
const (
	sessionBytes   = 1500
	queuedBytes    = 120
	watchBytes     = 120
	subscribeBytes = 160
)

// Bytes returns the memory of the session. The stream that a replica has not been sent yet does not belong to it.
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

// counted returns the session's share of ClientBytes.
func (s *Session) counted() int64 {
	return s.bufferBytes() + s.extra
}

// spared tells whether the session is exempt from maxmemory-clients.
func (s *Session) spared() bool { return s.Shown.Flags.Load()&ShownNoEvict != 0 }

// ClientArrived begins to count a session's memory, ClientGone ends that.
func (s *Server) ClientArrived(sess *Session) {
	s.clientGrew(sess, sess.counted())
	sess.Conn.Buffered = func(bytes int64) { s.clientGrew(sess, bytes) }
}

// ClientGone ends what ClientArrived began.
func (s *Server) ClientGone(sess *Session) {
	sess.Conn.Buffered = nil
	s.SpareClient(sess, false)
	s.ClientBytes.Add(-sess.counted())
}

// SpareClient makes a session exempt from maxmemory-clients, or ends that. Only the session's goroutine calls it.
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

// ClientsTakeTooMuch tells whether clients use more than maxmemory-clients, or would with so many bytes more.
func (s *Server) ClientsTakeTooMuch(more int64) bool {
	limit := s.MaxClientBytes.Load()
	return limit != 0 && s.ClientBytes.Load()-s.sparedBytes.Load()+more > limit
}

// ClientServed updates a session's memory after its commands.
func (s *Server) ClientServed(sess *Session) {
	sess.ShowMulti()
	if now := sess.extraBytes(); now != sess.extra {
		before := sess.extra
		sess.extra = now
		s.clientGrew(sess, now-before)
	}
}

// LetGo counts objects that Redis would free in the background, and reports many freed pieces of memory to the host: the Go
// runtime would collect them only after the heap has grown by as much as is in use, which may never happen without writes.
func (s *Server) LetGo(objects, pieces int) {
	s.Stats.LazyFreed.Add(int64(objects))
	if s.letGo.Add(int64(pieces)) < FreedPieces {
		return
	}
	s.letGo.Store(0)
	s.Host.Freed()
}
