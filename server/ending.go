package server

// The end of the server, in three steps: replicas catch up, data is written to disk, connections end. After the first two the
// server may still go on instead.

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/pause"
)

// errTakenBack is why the server goes on: SHUTDOWN ABORT.
var errTakenBack = errors.New("the end was taken back")

// catchUpPoll is how often it is looked whether replicas have all that was written.
const catchUpPoll = 5 * time.Millisecond

// CatchUp waits until the replicas have all writes, or until shutdown-timeout is over. Writes are paused meanwhile. It returns
// how the server is to end, or an error if the end was taken back (SHUTDOWN ABORT).
func (s *Server) CatchUp() (command.End, error) {
	ks := s.Keyspace
	e, ok := s.Shutdown.Begin(func(e command.End) int64 {
		if timeout := s.params.shutdown.Load(); !e.Now && timeout != 0 && !s.Replication.InSync() {
			return engine.Monotonic() + timeout*1e6
		}
		return 0
	})
	if !ok {
		return e, errTakenBack
	}
	s.Logf('n', "User requested shutdown...")
	if until := s.Shutdown.Until(); until != 0 {
		s.Pause.Begin(ks, pause.ForShutdown, math.MaxInt64, true)
		s.Replication.Ask()
		s.Logf('n', "Waiting for replicas before shutting down.")
		for s.Shutdown.Until() != 0 && engine.Monotonic() < until && !s.Replication.InSync() {
			time.Sleep(catchUpPoll)
		}
	}
	if !s.Shutdown.Finish() {
		s.Pause.End(ks, pause.ForShutdown)
		return e, errTakenBack
	}
	s.Replication.LogLag()
	return e, nil
}

// Prepare writes data to disk, as e says, and pauses clients from then on. If that fails, the server goes on, and the error
// says why.
func (s *Server) Prepare(e command.End) error {
	s.Ending.Store(int32(e.How))
	err := s.Persistence.BeforeStop(e.How, e.Force)
	if err != nil {
		s.Ending.Store(int32(command.EndAsConfigured))
		s.Logf('w', "Errors trying to shut down the server. Check the logs for more information.")
		s.Shutdown.Fail()
		s.Pause.End(s.Keyspace, pause.ForShutdown)
	}
	return err
}

// Close ends all connections and stops the server. If something does not end within shutdown-timeout, Close gives up on it
// and returns an error.
func (s *Server) Close() error {
	ended := make(chan struct{})
	go func() {
		defer s.Caught("ending the server")
		s.Long.Stop() // others may wait for their keys
		for _, ns := range s.Namespaces.All() {
			s.Namespaces.Drop(s.Server, ns)
		}
		s.unbind()
		s.host.net.Close()
		s.Long.Wait()
		s.Keyspace.Sched.Stop()
		close(ended)
	}()
	within := s.ShutdownTimeout()
	select {
	case <-ended:
		s.host.Writing()
		how := command.Ending(s.Ending.Load())
		s.Replication.Stop()
		failed := s.Persistence.Stop(how)
		if err := s.site.Close(); failed == nil {
			failed = err
		}
		return failed
	case <-time.After(within):
		return fmt.Errorf("something is stuck: the server did not end within the %v of shutdown-timeout", within)
	}
}

// ShutdownTimeout is how long Close may take.
func (s *Server) ShutdownTimeout() time.Duration {
	return max(shutdownMin, time.Duration(min(s.params.shutdown.Load(), math.MaxInt64/int64(time.Second)))*time.Second)
}

// shutdownMin is the least time for replies that wait to be sent.
const shutdownMin = 1500 * time.Millisecond
