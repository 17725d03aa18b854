//go:build !linux

package resp

// Systems without epoll.

import "net"

// Without epoll there are no loops: every connection is served by goroutines.
type (
	loop       struct{}
	supervisor struct{}
	watch      struct{}
)

// InRound and Watch say that there are no loops.
func (s *Server) InRound() bool          { return false }
func (s *Server) Watch(int, func()) bool { return false }

func (s *Server) startLoops() error               { return nil }
func (s *Server) stopLoops()                      {}
func (s *Server) eachOnLoops(func(c *Conn))       {}
func (s *Server) loopIO() []IO                    { return nil }
func (s *Server) listenOnLoop(net.Listener) error { return nil }
