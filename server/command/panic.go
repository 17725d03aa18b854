package command

// Panics that cannot be answered with an error: those in the server's own goroutines, and those that may have left wrong data.
// The process then ends with a message. It would otherwise continue with wrong data, or hang.

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

// Panicked ends the server because of a panic. It must be called on the panic's stack.
func (s *Server) Panicked(what string, r any) {
	s.Die(fmt.Sprintf("panic in %s: %v\n%s", what, r, debug.Stack()))
}

// Die ends the server, because its data cannot be trusted or a client would wait for ever. It does not return.
func (s *Server) Die(why string) {
	if !s.dying.CompareAndSwap(false, true) {
		select {} // another goroutine is ending it
	}
	text := "fatal: " + why
	told := make(chan struct{})
	go func() { // the reader of the log may have stopped reading
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

// locksMax is how long ProveFree waits for a lock that a panic may have left locked.
const locksMax = 10 * time.Second

// ProveFree ends the server if a lock stays locked after a command's panic. It takes some time, in which other commands run.
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
