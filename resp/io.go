package resp

// Counters of reads and writes: they show an operator whether pipelining
// works and whether the load is spread evenly over the loops.

import "sync/atomic"

// IO counts the work of one loop, or of all connections together that goroutines
// serve.
type IO struct {
	Clients       int
	Reads, Writes int64 // only calls that moved bytes
}

// ioCount has the counters behind an IO.
type ioCount struct{ reads, writes atomic.Int64 }

// IO returns the counters of every loop, and last those of the connections served by goroutines.
func (s *Server) IO() []IO {
	all := append(s.loopIO(), IO{Reads: s.gor.io.reads.Load(), Writes: s.gor.io.writes.Load()})
	s.gor.mu.Lock()
	all[len(all)-1].Clients = len(s.gor.conns)
	s.gor.mu.Unlock()
	return all
}
