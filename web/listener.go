package web

// A listener with limits for all connections and for those of one address. It accepts every new connection. At the limit, it
// closes another one: the connection that has been idle longest, of the address that has most. So a client cannot block
// health checks and metrics by holding connections open. If new connections waited in the kernel's queue instead, the old
// connections could stay for ever.

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// ConnectionsMax is the most connections in all, addressMax the most of one address.
const (
	ConnectionsMax = 256
	addressMax     = 64
)

// room has the open connections.
type room struct {
	mu    sync.Mutex
	conns map[*counted]struct{}
	of    map[netip.Addr]int
	turn  uint64
}

func newRoom() *room {
	return &room{conns: make(map[*counted]struct{}), of: make(map[netip.Addr]int)}
}

// limited puts the connections that a listener accepts into a room.
type limited struct {
	net.Listener
	room *room
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.room.enter(c), nil
}

// enter adds a connection, and closes another one if there are too many.
func (r *room) enter(nc net.Conn) *counted {
	c := &counted{Conn: nc, room: r, from: network(nc.RemoteAddr())}
	r.mu.Lock()
	var victim *counted
	switch {
	case r.of[c.from] >= addressMax:
		victim = r.longest(c.from)
	case len(r.conns) >= ConnectionsMax:
		most := c.from
		for a, n := range r.of {
			if n > r.of[most] {
				most = a
			}
		}
		victim = r.longest(most)
	}
	if victim != nil {
		r.forget(victim)
	}
	r.turn++
	c.since = r.turn
	r.conns[c] = struct{}{}
	r.of[c.from]++
	r.mu.Unlock()
	if victim != nil {
		_ = victim.Conn.Close()
	}
	return c
}

// longest returns the connection of an address that has been idle longest. If all have a request, it returns the one whose
// request began first.
func (r *room) longest(a netip.Addr) *counted {
	var found *counted
	for c := range r.conns {
		if c.from == a && (found == nil || c.before(found)) {
			found = c
		}
	}
	return found
}

func (c *counted) before(d *counted) bool {
	if c.active != d.active {
		return !c.active
	}
	return c.since < d.since
}

func (r *room) forget(c *counted) {
	if _, in := r.conns[c]; !in {
		return
	}
	delete(r.conns, c)
	if r.of[c.from]--; r.of[c.from] == 0 {
		delete(r.of, c.from)
	}
}

// state is called by the HTTP server when the state of a connection changes.
func (r *room) state(nc net.Conn, state http.ConnState) {
	if over, ok := nc.(*tls.Conn); ok {
		nc = over.NetConn()
	}
	c, ok := nc.(*counted)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	c.active, c.since = state == http.StateActive, r.turn
}

// network is the address under which a connection is counted. For IPv6 it is the /64 network, since one owner has all of its
// addresses.
func network(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := t.AddrPort().Addr().Unmap()
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}

// counted is a connection in a room until it is closed.
type counted struct {
	net.Conn
	room *room
	from netip.Addr
	// active tells whether a request is under way. since is the turn of the room at which that last changed.
	active bool
	since  uint64
}

// Write closes the connection if one write takes longer than writeTimeout.
func (c *counted) Write(b []byte) (int, error) {
	late := time.AfterFunc(writeTimeout, func() { _ = c.Conn.Close() })
	defer late.Stop()
	return c.Conn.Write(b)
}

func (c *counted) Close() error {
	c.room.mu.Lock()
	c.room.forget(c)
	c.room.mu.Unlock()
	return c.Conn.Close()
}
