package main

// A program that always sends the same reply. It shows the least cost of single requests for any server that waits with epoll.

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runLeast is a server on one thread that waits with epoll, reads, and replies nil to each star. Requests begin with one, and
// no argument may contain one. It uses raw system calls, without the Go runtime's knowledge, since they do not block.
func runLeast(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs a port", leastCommand)
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(listener, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(listener, unix.SOMAXCONN); err != nil {
		return err
	}
	epoll, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	watch := func(fd int) error {
		return unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	}
	if err := watch(listener); err != nil {
		return err
	}
	events, in := make([]unix.EpollEvent, 1024), make([]byte, 16<<10)
	nils := bytes.Repeat([]byte("$-1\r\n"), len(in))
	for {
		n, err := unix.EpollWait(epoll, events, -1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			fd := int(e.Fd)
			if fd == listener {
				if fd, _, err = unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC); err != nil {
					return err
				}
				if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
					return err
				}
				if err := watch(fd); err != nil {
					return err
				}
				continue
			}
			got, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&in[0])), uintptr(len(in)))
			if n := bytes.Count(in[:max(int(got), 0)], []byte("*")); errno == 0 && n > 0 {
				answer := nils[:n*len("$-1\r\n")]
				_, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&answer[0])), uintptr(len(answer)))
			}
			if errno != 0 && errno != syscall.EAGAIN || got == 0 {
				_ = unix.Close(fd)
			}
		}
	}
}
