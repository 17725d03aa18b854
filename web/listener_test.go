package web

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

// dummy is a connection from an address; it records whether it was closed.
type dummy struct {
	net.Conn
	from   string
	closed bool
}

func (d *dummy) Close() error { d.closed = true; return nil }

func (d *dummy) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(d.from), Port: 1}
}

// A new connection is always accepted; the one that is closed has been idle longest, of the address that has most.
func TestRoom(t *testing.T) {
	r := newRoom()
	var all []*dummy
	enter := func(from string) *counted {
		d := &dummy{from: from}
		all = append(all, d)
		return r.enter(d)
	}
	gone := func() (list []int) {
		for i, d := range all {
			if d.closed {
				list = append(list, i)
			}
		}
		return list
	}
	wants := func(want string) {
		t.Helper()
		if got := fmt.Sprint(gone()); got != want {
			t.Fatalf("closed: %s, want %s", got, want)
		}
	}
	var first []*counted
	for range addressMax {
		first = append(first, enter("10.0.0.1"))
	}
	r.state(first[0], http.StateActive)
	r.state(first[1], http.StateIdle)
	enter("10.0.0.1")
	wants("[2]") // 0 has a request, 1 has just had one
	for len(r.conns) < ConnectionsMax {
		enter(fmt.Sprintf("10.0.1.%d", len(r.conns)%50))
	}
	wants("[2]")
	enter("10.0.0.2")
	wants("[2 3]")
	for _, c := range first {
		r.state(c, http.StateActive)
	}
	first[5].Close()
	first[5].Close() // counts once
	if len(r.conns) != ConnectionsMax-1 || r.of[first[0].from] != addressMax-2 {
		t.Errorf("%d connections, %d of the first address", len(r.conns), r.of[first[0].from])
	}
	for i := range 3 * addressMax { // one owner has any number of addresses of IPv6
		enter(fmt.Sprintf("2001:db8:0:1::%x", i+1))
	}
	if n := r.of[network(&net.TCPAddr{IP: net.ParseIP("2001:db8:0:1::")})]; n == 0 || n > addressMax {
		t.Errorf("%d connections of one network", n)
	}
	if n := len(r.conns); n > ConnectionsMax {
		t.Errorf("%d connections", n)
	}
	sum := 0
	for _, n := range r.of {
		sum += n
	}
	if sum != len(r.conns) {
		t.Errorf("%d connections by address, %d in all", sum, len(r.conns))
	}
}
