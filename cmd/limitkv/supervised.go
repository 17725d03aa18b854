package main

// What the system that starts the server is told: systemd that it is ready and
// that it ends, and whoever reads it its process id in a file. Both are best
// effort, as in Redis: the server serves without them.

import (
	"fmt"
	"net"
	"os"

	"github.com/limitkv/limitkv/server"
)

// supervisor is whom the server tells.
type supervisor struct {
	s       *server.Server
	socket  string // of systemd, "" for none
	pidfile string
}

// supervised tells that there is a server.
func supervised(s *server.Server) *supervisor {
	v := &supervisor{s: s, pidfile: s.Config.Find("pidfile").Get()}
	if s.Config.Supervised() {
		v.socket = os.Getenv("NOTIFY_SOCKET")
	}
	if v.pidfile != "" {
		if err := os.WriteFile(v.pidfile, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
			s.Logf('w', "pidfile: %v", err)
		}
	}
	return v
}

// ready tells that all is loaded.
func (v *supervisor) ready() { v.tell("STATUS=Ready to accept connections\nREADY=1\n") }

// ending tells that the server ends.
func (v *supervisor) ending() {
	if v.pidfile != "" {
		_ = os.Remove(v.pidfile) // somebody else may have done it
	}
}

// tell sends systemd a message.
func (v *supervisor) tell(message string) {
	if v.socket == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: v.socket, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(message))
		_ = c.Close()
	}
	if err != nil {
		v.s.Logf('w', "supervised systemd: %v", err)
	}
}
