package main

// Notifications for what starts the server: systemd learns when it is ready and when it ends, and a file holds its process ID.
// Both are best effort, as in Redis: the server also serves without them.

import (
	"fmt"
	"net"
	"os"

	"github.com/limitkv/limitkv/server"
)

// supervisor holds where the notifications go.
type supervisor struct {
	s       *server.Server
	socket  string // of systemd, "" for none
	pidfile string
}

// supervised writes the pidfile, and returns the supervisor.
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

// ready reports that all is loaded.
func (v *supervisor) ready() { v.tell("STATUS=Ready to accept connections\nREADY=1\n") }

// ending removes the pidfile at the end.
func (v *supervisor) ending() {
	if v.pidfile != "" {
		_ = os.Remove(v.pidfile) // another process may have removed it
	}
}

// tell sends a message to systemd.
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
