package server

// What the server does, and says, when the system's clock steps.

import (
	"time"
)

// steppedMin is the smallest step of the clock that is logged.
const steppedMin = 100 * time.Millisecond

// clockStepped is called when the server's clock has followed a step of the system's, in microseconds.
func (s *Server) clockStepped(micros int64) {
	if micros < 0 {
		s.Pause.Moved(s.Keyspace, -micros)
	}
	step := time.Duration(micros) * time.Microsecond
	switch {
	case step >= steppedMin:
		s.Logf('w', "The system's clock went forward by %v. The server's followed: what is due by it happens now.", step)
	case step <= -steppedMin:
		s.Logf('w', "The system's clock went back by %v. The server's followed.", -step)
	}
}
