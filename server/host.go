package server

// What the server runs in: its connections, and whose program it is part of.

import (
	"crypto/tls"
	"net"

	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/longrun"
)

// host is what the server runs in: its listeners, and whose program it is part of.
type host struct {
	s       *Server
	net     *resp.Server
	options Options
}

// Authorize and the other methods are for what is below the server, and for families: see command.Host.
func (h *host) Authorize(c *command.Ctx, cmd *command.Command, args [][]byte) string {
	return h.s.ACL.Authorize(c, cmd, args)
}

func (h *host) AuthorizeKeys(c *command.Ctx, keys []command.NamedKey) string {
	return h.s.ACL.AuthorizeKeys(c, keys)
}

func (h *host) GoLong(c *command.Ctx, since int64) *longrun.Run { return h.s.GoLong(c, since) }

func (h *host) Step(c *command.Ctx) { h.s.Step(c) }

func (h *host) Apply(sess *command.Session, args [][]byte) error { return h.s.Apply(sess, args) }

func (h *host) Replayer(sess *command.Session, feed func(raw []byte)) command.Replayer {
	return h.s.Replayer(sess, feed)
}

func (h *host) TookLong(c *command.Ctx, cmd *command.Command, args [][]byte, micros int64) {
	h.s.Latency.Executed(c, cmd, args, micros)
}

func (h *host) EvictClientsSoon() { h.s.Keeper.EvictClientsSoon() }

func (h *host) Flushed(c *command.Ctx) { h.s.Tracker.Flushed(c) }

func (h *host) IO() []resp.IO { return h.net.IO() }

func (h *host) InRound() bool { return h.net.InRound() }

func (h *host) Watch(event int, fn func()) bool { return h.net.Watch(event, fn) }

// Dial: the other end is served by goroutines, as connections with TLS are.
func (h *host) Dial(remote net.Addr) net.Conn {
	here, there := net.Pipe()
	h.net.ServeConn(&within{there, remote})
	return here
}

// within is a connection inside the process, for somebody elsewhere.
type within struct {
	net.Conn
	remote net.Addr
}

// Inside has it count to no limit of clients: see resp.Conn.
func (w *within) Inside() {}

func (w *within) RemoteAddr() net.Addr { return w.remote }

func (h *host) Ends() bool { return h.options.Shutdown != nil }

func (h *host) Shutdown() { h.options.Shutdown() }

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

func (h *host) ClientTLS() (*tls.Config, error) { return h.s.params.tls.client(h.s.Config.Value) }

func (h *host) Freed() {
	if h.options.Freed != nil {
		h.options.Freed()
	}
}
