package web

// A listener that has room for so many connections, and for so many of one address. Whoever comes is let in: where there is no
// room, the connection that has been idle for longest goes, of the address that has most. So nobody keeps checks and scrapes
// out by holding connections. To make them wait in the kernel's queue instead would be to let whoever came first stay.

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// ConnectionsMax is how many connections there are at most, addressMax how many of one address.
const (
	ConnectionsMax = 256
	addressMax     = 64
)

// room has the connections.
type room struct {
	mu    sync.Mutex
	conns map[*counted]struct{}
	of    map[netip.Addr]int
	turn  uint64
}

func newRoom() *room {
	return &room{conns: make(map[*counted]struct{}), of: make(map[netip.Addr]int)}
}

// limited lets into a room whoever a listener accepts.
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

// enter lets c in, for whom another connection goes if there are too many.
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

// longest is the connection of an address that has waited longest for a request, or, if all are at one, has been at it longest.
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

// state is told by the HTTP server what a connection is at.
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

// network is the address that a connection counts for: of IPv6 the network, which has one owner and more addresses than there
// are connections.
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
	// active tells whether there is a request, since when that began or ended.
	active bool
	since  uint64
}

// Write ends the connection if the client takes nothing for writeTimeout.
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
