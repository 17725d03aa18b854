package memory

// maxmemory-clients: the memory that all connections together may use. Above it, the largest ones are closed first.

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
)

// clientBytesMin is the smallest effective value of maxmemory-clients, as in Redis: below it no client could connect to raise
// it.
const clientBytesMin = 128 << 10

// clientEvictor closes connections that use too much memory.
type clientEvictor struct {
	s     *command.Server
	share func() (bytes, percent int64)

	wanted, running atomic.Bool
	mu              sync.Mutex // one at a time
}

func declareClientMemory(s *command.Server) *clientEvictor {
	e := &clientEvictor{s: s}
	e.share = s.Config.MemoryOrShare("maxmemory-clients", "bytes, or per cent of maxmemory, that connections may take before the largest are ended, 0 = no limit")
	return e
}

// apply is called after a change of maxmemory-clients or maxmemory.
func (e *clientEvictor) apply() {
	bytes, percent := e.share()
	if percent > 0 {
		bytes = int64(float64(e.s.MaxMemory.Load()) * float64(percent) / 100)
	}
	if bytes > 0 {
		bytes = max(bytes, clientBytesMin)
	}
	e.s.MaxClientBytes.Store(bytes)
	if e.s.ClientsTakeTooMuch(0) {
		e.EvictClients(nil, 0)
	}
}

// EvictClientsSoon evicts clients on another goroutine, as the caller may hold locks.
func (e *clientEvictor) EvictClientsSoon() {
	e.wanted.Store(true)
	if !e.running.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer e.s.Caught("evicting clients")
		for e.wanted.Swap(false) {
			e.EvictClients(nil, 0)
		}
		e.running.Store(false)
		if e.wanted.Load() {
			e.EvictClientsSoon()
		}
	}()
}

// EvictClients closes the largest connections until the rest is within the limit. Those with CLIENT NO-EVICT ON stay and do
// not count. self counts with more bytes than it uses.
func (e *clientEvictor) EvictClients(self *command.Session, more int64) {
	limit := e.s.MaxClientBytes.Load()
	if limit == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	type sized struct {
		session *command.Session
		bytes   int64
	}
	var list []sized
	total := int64(0)
	for _, s := range e.s.Clients.All() {
		if s.Shown.Flags.Load()&command.ShownNoEvict == 0 {
			n := s.Bytes()
			if s == self {
				n += more
			}
			list = append(list, sized{s, n})
			total += n
		}
	}
	slices.SortFunc(list, func(a, b sized) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, x := range list {
		if total <= limit {
			break
		}
		e.s.Logf('n', "ending client %d %s, which takes %d bytes, for maxmemory-clients", x.session.ID, x.session.Conn.RemoteAddr(), x.bytes)
		e.s.Kill(x.session)
		e.s.Stats.EvictedClients.Add(1)
		total -= x.bytes
	}
}
