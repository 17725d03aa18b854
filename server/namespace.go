package server

// Ports of namespaces, and commands that the server runs in one.

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/limitkv/limitkv/server/command"
)

// acceptRetry is the pause before the next try when there was no file descriptor for a connection.
const acceptRetry = 10 * time.Millisecond

// Open listens on a free port of the first address of bind. Goroutines serve its connections, since such a listener can be
// closed alone, unlike one of the loops.
func (s *Server) Open() (port int, end func(), err error) {
	host := "127.0.0.1"
	if hosts := strings.Fields(s.params.bind()); len(hosts) > 0 {
		host = strings.TrimPrefix(hosts[0], "-")
	}
	ln, err := net.Listen(listenAt(host, "0"))
	if err != nil {
		return 0, nil, err
	}
	go func() {
		defer s.Caught("a namespace")
		for {
			conn, err := ln.Accept()
			switch {
			case err == nil:
				s.host.net.ServeConn(conn)
			case errors.Is(err, net.ErrClosed):
				return
			default:
				time.Sleep(acceptRetry)
			}
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port, func() { ln.Close() }, nil
}

// arrived puts a new session into the namespace whose port it connected to.
func (s *Server) arrived(sess *command.Session) {
	if !s.TestMode {
		return
	}
	_, port, _ := net.SplitHostPort(sess.Conn.LocalAddr())
	if n, err := strconv.Atoi(port); err == nil && n != 0 {
		if ns := s.Namespaces.At(n); ns != nil {
			sess.SetNamespace(ns)
		}
	}
}

// DoIn is Do in a namespace, "" for none.
func (s *Server) DoIn(namespace string, args ...string) []byte {
	sess := &command.Session{Authenticated: true}
	if namespace != "" {
		ns := s.Namespaces.Find(namespace)
		if ns == nil {
			return []byte("-" + command.ErrNoNamespace + "\r\n")
		}
		sess.SetNamespace(ns)
	}
	return s.do(sess, args)
}
