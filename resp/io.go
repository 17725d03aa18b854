package resp

// How often was read and written: an operator sees by it whether pipelining
// works and whether the loops have alike much to do.

import "sync/atomic"

// IO is what a loop has done, or all connections together that are served by
// goroutines.
type IO struct {
	Clients       int
	Reads, Writes int64 // those that moved bytes
}

// ioCount counts for an IO.
type ioCount struct{ reads, writes atomic.Int64 }

// IO tells of every loop, and last of the connections served by goroutines.
func (s *Server) IO() []IO {
	all := append(s.loopIO(), IO{Reads: s.gor.io.reads.Load(), Writes: s.gor.io.writes.Load()})
	s.gor.mu.Lock()
	all[len(all)-1].Clients = len(s.gor.conns)
	s.gor.mu.Unlock()
	return all
}
