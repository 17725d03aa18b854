package main

// The driver on Linux: a few threads, each with its connections, one epoll instance and raw system calls. So the generator
// uses little of the machine that it shares with the server.

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// thread drives some of a run's connections.
type thread struct {
	load    *load
	tally   *tally
	epfd    int
	socks   []*sock
	in, out []byte
	events  [128]unix.EpollEvent
	// For requests at a fixed rate: when this thread's next one is due, the interval, and the connection that sends it.
	next, step float64
	turn       int
	ended      int64 // when the run ended, 0 before that
	failure    error
}

// sock is a client with its socket.
type sock struct {
	*client
	fd   int
	rest []byte // bytes that the socket has not accepted yet
}

// readBytes is the size of the read buffer.
const readBytes = 256 << 10

// drive opens connections, runs the load on them until its end, closes them, and returns the threads' counts. It calls ready
// when all connections are open.
func drive(l *load, addr, auth string, connections, threads int, ready func()) ([]*tally, error) {
	target, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	threads = min(threads, connections)
	list := make([]*thread, threads)
	for i := range list {
		epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return nil, err
		}
		list[i] = &thread{load: l, tally: newTally(), epfd: epfd, in: make([]byte, readBytes)}
	}
	defer func() {
		for _, t := range list {
			t.close()
		}
	}()
	for i := range connections {
		t := list[i%threads]
		if err := t.open(target, auth, uint64(i)); err != nil {
			return nil, fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	start := time.Now()
	finished := make(chan *thread)
	for i, t := range list {
		t.step = l.interval * float64(threads)
		t.next = float64(nanotime(start)) + l.interval*float64(i)
		go func() {
			runtime.LockOSThread()
			// Timers with a resolution of a microsecond, for requests at a rate.
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
			t.failure = t.run(start)
			finished <- t
		}()
	}
	ready()
	var tallies []*tally
	for range list {
		t := <-finished
		if t.failure != nil {
			l.phase.Store(ended)
			err = t.failure
		}
		t.tally.flush()
		tallies = append(tallies, t.tally)
	}
	return tallies, err
}

// nanotime returns the nanoseconds since start.
func nanotime(start time.Time) int64 { return int64(time.Since(start)) }

func (t *thread) open(target *net.TCPAddr, auth string, id uint64) error {
	c, err := dial(target.String(), auth) // blocking, by the net package
	if err != nil {
		return err
	}
	file, err := c.conn.(*net.TCPConn).File() // a duplicate
	c.close()
	if err != nil {
		return err
	}
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	file.Close()
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(t.socks))}
	if err := unix.EpollCtl(t.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return err
	}
	t.socks = append(t.socks, &sock{client: newClient(t.load, t.tally, id), fd: fd})
	return nil
}

func (t *thread) close() {
	for _, s := range t.socks {
		unix.Close(s.fd)
	}
	unix.Close(t.epfd)
}

// run is a thread's loop.
func (t *thread) run(start time.Time) error {
	if t.load.interval == 0 {
		for _, s := range t.socks {
			if err := t.write(s, s.batch(t.out[:0], nanotime(start))); err != nil {
				return err
			}
		}
	}
	for t.load.phase.Load() != ended || t.owed(start) {
		n, err := t.wait(start)
		if err != nil {
			return err
		}
		for i := range t.events[:n] {
			ev := &t.events[i]
			s := t.socks[ev.Fd]
			if ev.Events&unix.EPOLLOUT != 0 {
				rest := s.rest
				s.rest = nil
				if err := t.write(s, rest); err != nil {
					return err
				}
				t.arm(s, int32(ev.Fd))
			}
			if ev.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
				if err := t.read(s, int32(ev.Fd), start); err != nil {
					return err
				}
			}
		}
		if t.load.interval > 0 && t.load.phase.Load() != ended {
			if err := t.issue(nanotime(start)); err != nil {
				return err
			}
		}
	}
	for _, s := range t.socks {
		t.tally.unsent += uint64(len(s.waiting))
	}
	return nil
}

// owedMax is how long outstanding replies may take after the end of a run.
const owedMax = time.Second

// owed tells whether replies are outstanding. The server continues with the requests that it has read even if the connection
// is closed, which would disturb the next workload.
func (t *thread) owed(start time.Time) bool {
	if t.ended == 0 {
		t.ended = nanotime(start)
	}
	if nanotime(start)-t.ended > int64(owedMax) {
		return false
	}
	for _, s := range t.socks {
		if s.count > 0 {
			return true
		}
	}
	return false
}

// waitMax is how long a thread sleeps at most, since it must notice the end of the run.
const waitMax = 20 * time.Millisecond

// wait waits for events, at most until a request is due, and returns their number.
func (t *thread) wait(start time.Time) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(t.epfd), uintptr(unsafe.Pointer(&t.events[0])), uintptr(len(t.events)), 0, 0, 0)
	if errno == 0 && n > 0 {
		return int(n), nil
	}
	sleep := int64(waitMax)
	if t.load.interval > 0 {
		sleep = min(sleep, int64(t.next)-nanotime(start))
		if sleep <= 0 {
			return 0, nil
		}
	}
	ts := unix.NsecToTimespec(sleep)
	n, _, errno = syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(t.epfd), uintptr(unsafe.Pointer(&t.events[0])), uintptr(len(t.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno != 0 && errno != syscall.EINTR {
		return 0, errno
	}
	if errno == syscall.EINTR {
		return 0, nil
	}
	return int(n), nil
}

// issue sends the requests that are due.
func (t *thread) issue(now int64) error {
	for t.next <= float64(now) {
		s := t.socks[t.turn]
		if t.turn++; t.turn == len(t.socks) {
			t.turn = 0
		}
		if b := s.due(t.out[:0], int64(t.next)); len(b) > 0 {
			if err := t.write(s, b); err != nil {
				return err
			}
		}
		t.next += t.step
	}
	return nil
}

var errClosed = errors.New("the server closed a connection")

func (t *thread) read(s *sock, slot int32, start time.Time) error {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(s.fd), uintptr(unsafe.Pointer(&t.in[0])), uintptr(len(t.in)))
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0:
		return errno
	case n == 0:
		return errClosed
	}
	b, ok := s.answers(t.in[:n], t.out[:0], nanotime(start))
	if !ok {
		return errReply
	}
	if err := t.write(s, b); err != nil {
		return err
	}
	if s.rest != nil {
		t.arm(s, slot)
	}
	return nil
}

// write sends b, and stores what the socket does not accept.
func (t *thread) write(s *sock, b []byte) error {
	if cap(b) > cap(t.out) && s.rest == nil {
		t.out = b[:0]
	}
	if len(b) == 0 {
		return nil
	}
	if s.rest != nil {
		s.rest = append(s.rest, b...)
		return nil
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno == syscall.EAGAIN || errno == syscall.EINTR {
		n, errno = 0, 0
	}
	if errno != 0 {
		return errno
	}
	if int(n) < len(b) {
		s.rest = append([]byte(nil), b[n:]...)
		for i, x := range t.socks {
			if x == s {
				t.arm(s, int32(i))
			}
		}
	}
	return nil
}

// arm tells epoll which events of the socket to report.
func (t *thread) arm(s *sock, slot int32) {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: slot}
	if s.rest != nil {
		ev.Events |= unix.EPOLLOUT
	}
	_ = unix.EpollCtl(t.epfd, unix.EPOLL_CTL_MOD, s.fd, &ev)
}
