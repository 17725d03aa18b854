package resp

// The first loop accepts all clients and gives each to the loop that has the
// fewest. With SO_REUSEPORT every loop could accept for itself, but the kernel
// distributes by hash: if 50 clients connect to two loops, one loop gets 30 or
// more of them every fifth time.

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// acceptor is a listening socket on the first loop.
type acceptor struct {
	fd    int
	slot  int32  // of its events
	path  string // of a unix socket
	spare int    // a reserved descriptor, closed to refuse a client when no other is left

	keepalive int64 // the keepalive period that clients inherit, -1 before it is set
	stale     bool  // clients that wait to be accepted may have inherited an older period
}

// listenOnLoop gives ln to the first loop. It duplicates the descriptor and closes ln,
// since each client would wake Go's poller for nothing. The descriptor that ln.File
// returns would not avoid that.
func (s *Server) listenOnLoop(ln net.Listener) error {
	var path string
	var conn syscall.Conn
	switch ln := ln.(type) {
	case *net.TCPListener:
		conn = ln
	case *net.UnixListener:
		path = ln.Addr().String()
		ln.SetUnlinkOnClose(false)
		conn = ln
	default:
		s.running.Add(1)
		go s.acceptGoroutines(ln)
		return nil
	}
	fd, err := dup(conn)
	if err != nil {
		return err
	}
	ln.Close()
	a := &acceptor{fd: fd, path: path, keepalive: -1}
	a.bequeath(s.keepalive.Load())
	a.holdBack()
	l := s.loops[0]
	failed := make(chan error, 1)
	l.call(func() {
		a.slot = slotAccept - int32(len(l.accepts))
		l.accepts = append(l.accepts, a)
		failed <- a.listen(l, unix.EPOLL_CTL_ADD, unix.EPOLLIN)
	})
	return <-failed
}

// dup returns a duplicate of c's descriptor.
func dup(c syscall.Conn) (fd int, err error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	if gone := rc.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); gone != nil {
		return -1, gone
	}
	return fd, err
}

// bequeath sets options of the listening socket that accepted sockets inherit, which saves five system calls per client.
func (a *acceptor) bequeath(keepalive int64) {
	if a.path != "" || a.keepalive == keepalive {
		return
	}
	if a.keepalive < 0 {
		_ = unix.SetsockoptInt(a.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	a.keepalive, a.stale = keepalive, true
	setKeepalive(a.fd, time.Duration(keepalive))
}

// ready accepts the clients that wait, up to a limit.
func (a *acceptor) ready(l *loop) {
	for range acceptsMax {
		fd, remote, err := rawAccept(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case 0:
			if a.spare < 0 {
				a.holdBack()
			}
			if a.bequeath(l.server.keepalive.Load()); a.stale && a.path == "" {
				setKeepalive(fd, time.Duration(a.keepalive))
			}
			a.assign(l, fd, remote)
		case syscall.EINTR, syscall.ECONNABORTED:
		case syscall.EMFILE, syscall.ENFILE:
			a.refuse(l)
			return
		default:
			a.stale = false // no client waits
			return
		}
	}
}

// refuse tells one waiting client that no descriptor is left for it. Without that the client would wait, and epoll would
// report it again and again. If there is no descriptor even for that, as when another file took the spare one, the acceptor
// pauses for restMillis.
func (a *acceptor) refuse(l *loop) {
	text := l.server.full()
	if a.spare >= 0 {
		unix.Close(a.spare)
	}
	fd, _, err := rawAccept(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err == 0 {
		_, _ = unix.Write(fd, []byte(text))
		unix.Close(fd)
	}
	if a.holdBack(); err != syscall.EMFILE && err != syscall.ENFILE {
		return
	}
	a.listen(l, unix.EPOLL_CTL_MOD, 0)
	time.AfterFunc(restMillis*time.Millisecond, func() {
		l.call(func() {
			if slices.Contains(l.accepts, a) {
				a.listen(l, unix.EPOLL_CTL_MOD, unix.EPOLLIN)
			}
		})
	})
}

// holdBack opens the spare descriptor; spare is negative if none is left.
func (a *acceptor) holdBack() { a.spare, _ = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0) }

// listen sets the events that epoll reports for the socket.
func (a *acceptor) listen(l *loop, op int, events uint32) error {
	return unix.EpollCtl(l.epfd, op, a.fd, &unix.EpollEvent{Events: events, Fd: a.slot})
}

// assign gives the client to the loop that has the fewest clients.
func (a *acceptor) assign(l *loop, fd int, remote netip.AddrPort) {
	best := l
	for _, o := range l.server.loops {
		if o.count.Load() < best.count.Load() {
			best = o
		}
	}
	var local netip.AddrPort
	if a.path == "" {
		local = rawSockname(fd)
	}
	best.count.Add(1)
	add := func() { best.add(fd, remote, local, a.path) }
	if best == l {
		add()
	} else if !l.adopt(best, add) && !best.call(add) {
		unix.Close(fd)
	}
}

// rawAccept and rawSockname bypass Go's scheduler, as raw does. The functions of package unix need an additional system call
// per address, for its protocol.
func rawAccept(listener int, flags uintptr) (fd int, remote netip.AddrPort, errno syscall.Errno) {
	var at unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	n, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size)), flags, 0, 0)
	if e != 0 {
		return -1, netip.AddrPort{}, e
	}
	return int(n), addrPort(&at), 0
}

func rawSockname(fd int) netip.AddrPort {
	var at unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	if _, _, e := syscall.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size))); e != 0 {
		return netip.AddrPort{}
	}
	return addrPort(&at)
}

// addrPort returns the address and port; the zero value if at is no Internet address.
func addrPort(at *unix.RawSockaddrAny) netip.AddrPort {
	var addr netip.Addr
	switch at.Addr.Family {
	case unix.AF_INET:
		addr = netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(at)).Addr)
	case unix.AF_INET6:
		addr = netip.AddrFrom16((*unix.RawSockaddrInet6)(unsafe.Pointer(at)).Addr).Unmap()
	default:
		return netip.AddrPort{}
	}
	port := (*[2]byte)(unsafe.Pointer(&(*unix.RawSockaddrInet4)(unsafe.Pointer(at)).Port)) // at the same place for AF_INET6
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(port[:]))
}

// setKeepalive asks for a keepalive probe after period and then three probes, a third of the period
// apart, as Redis does; for no probes if period is 0.
func setKeepalive(fd int, period time.Duration) {
	secs := int(period / time.Second)
	if secs <= 0 {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, secs)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(secs/3, 1))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
}

// loopIO is IO for the loops.
func (s *Server) loopIO() (all []IO) {
	for _, l := range s.loops {
		all = append(all, IO{int(l.count.Load()), l.io.reads.Load(), l.io.writes.Load()})
	}
	return all
}

// eachOnLoops is Each for the connections on loops.
func (s *Server) eachOnLoops(fn func(c *Conn)) {
	for _, l := range s.loops {
		l.call(func() {
			for _, c := range l.socks {
				if c == nil {
					continue
				}
				l.begin(c)
				fn(&c.Conn)
				l.finish(c)
			}
		})
	}
}

// stopLoops closes the listeners, then the connections of every loop. A loop ends when its last connection has ended. The
// listeners come first: otherwise a client that lost its connection could reconnect to the ending server and lose it again,
// and some clients do not try twice.
func (s *Server) stopLoops() {
	if len(s.loops) == 0 {
		return
	}
	s.share.freeze()
	s.loops[0].call(func() {
		for _, a := range s.loops[0].accepts {
			unix.Close(a.spare)
			unix.Close(a.fd)
			if a.path != "" {
				os.Remove(a.path)
			}
		}
		s.loops[0].accepts = nil
		for _, l := range s.loops {
			l.call(l.stop)
		}
	})
}

// stop closes the connections. Connections whose clients do not take their replies end after shutdownGraceMillis.
func (l *loop) stop() {
	l.stopping = true
	for _, c := range l.socks {
		if c != nil {
			c.close(true, ReasonShutdown)
			l.settle(c)
		}
	}
	l.grace = time.AfterFunc(shutdownGraceMillis*time.Millisecond, func() {
		l.call(func() {
			for _, c := range l.socks {
				if c != nil {
					l.drop(c)
				}
			}
		})
	})
}
