package command

// Where a panic may not be answered: in goroutines of the server's own, and
// where what it left cannot be trusted. Then the process ends, with a message,
// rather than to go on with wrong data or to hang.

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/limitkv/limitkv/engine"
)

// Caught is deferred at the top of goroutines: a panic in one ends the server.
func (s *Server) Caught(what string) {
	if r := recover(); r != nil {
		s.Panicked(what, r)
	}
}

// Panicked ends the server for a panic, on whose stack it is called.
func (s *Server) Panicked(what string, r any) {
	s.Die(fmt.Sprintf("panic in %s: %v\n%s", what, r, debug.Stack()))
}

// Die ends the server: what it holds cannot be trusted, or somebody would wait
// for ever. It does not return.
func (s *Server) Die(why string) {
	if !s.dying.CompareAndSwap(false, true) {
		select {} // somebody else says it
	}
	text := "fatal: " + why
	told := make(chan struct{})
	go func() { // whoever reads the log may not read any more
		s.Logf('w', "%s", text)
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(lastWordsMax):
	}
	s.Host.Fatal(text)
	panic(text)
}

// lastWordsMax is how long writing the log may take when the server dies.
const lastWordsMax = time.Second

// locksMax is how long a lock may be held that a panic is suspected to have left.
const locksMax = 10 * time.Second

// ProveFree ends the server if a lock is not let go any more: a command
// panicked, and may have left one. It takes its time, while others go on.
func (s *Server) ProveFree(why string) {
	defer s.Caught("looking for locks")
	within := s.LocksMax
	if within == 0 {
		within = locksMax
	}
	free := s.Keyspace.LocksFree(within)
	locks := append([]engine.Lock{&s.Clients.mu, &s.Workers.mu, s.Long.Guard(), s.Pause.Guard(), s.Config.Guard(), &s.Namespaces.mu}, s.Mutexes...)
	end := engine.Monotonic() + within.Microseconds()
	for _, l := range locks {
		free = free && engine.Free(l, end)
	}
	if !free {
		s.Die("a lock is held for ever after a " + why)
	}
}
