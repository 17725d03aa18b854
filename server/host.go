package server

// What the server runs in: its connections, and whose program it is part of.

import (
	"crypto/tls"
	"net"

	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// host is what the server runs in: its listeners, and whose program it is part of.
type host struct {
	*Server
	net     *resp.Server
	options Options
}

// Authorize and the other methods are for what is below the server: see command.Host.
func (h *host) Authorize(c *command.Ctx, cmd *command.Command, args [][]byte) string {
	return h.ACL.Authorize(c, cmd, args)
}

func (h *host) AuthorizeKeys(c *command.Ctx, keys []command.NamedKey) string {
	return h.ACL.AuthorizeKeys(c, keys)
}

func (h *host) TookLong(c *command.Ctx, cmd *command.Command, args [][]byte, micros int64) {
	h.Latency.Executed(c, cmd, args, micros)
}

func (h *host) EvictClientsSoon() { h.Keeper.EvictClientsSoon() }

func (h *host) Flushed(c *command.Ctx) { h.Tracker.Flushed(c) }

func (h *host) InRound() bool { return h.net.InRound() }

func (h *host) Watch(event int, fn func()) bool { return h.net.Watch(event, fn) }

// Dial makes a connection inside the process. Goroutines serve its other end, as they do for TLS.
func (h *host) Dial(remote net.Addr) net.Conn {
	here, there := net.Pipe()
	h.net.ServeConn(&within{there, remote})
	return here
}

// within is the server's end of a connection inside the process, on behalf of a remote client.
type within struct {
	net.Conn
	remote net.Addr
}

// Inside marks the connection: it does not count towards maxclients (resp.Conn).
func (w *within) Inside() {}

func (w *within) RemoteAddr() net.Addr { return w.remote }

// IO tells what the event loops have read and written.
func (s *Server) IO() []resp.IO { return s.host.net.IO() }

// Ends tells whether SHUTDOWN can end the server. In a server that is part of another program it cannot.
func (s *Server) Ends() bool { return s.host.options.Shutdown != nil }

// End begins the end that Server.Shutdown describes.
func (s *Server) End() { s.host.options.Shutdown() }

func (h *host) Writing() {
	if h.options.Served != nil {
		h.options.Served()
	}
}

func (h *host) Fatal(text string) {
	if h.options.Fatal != nil {
		h.options.Fatal(text)
	}
}

func (h *host) ClientTLS() (*tls.Config, error) { return h.params.tls.client(h.Config.Value) }

func (h *host) Freed() {
	if h.options.Freed != nil {
		h.options.Freed()
	}
}
