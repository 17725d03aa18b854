package main

// The program that answers always the same: what single requests take of any server that waits with epoll.

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runLeast is a server that waits with epoll, reads, and answers each read with nil, on one thread and by bare system calls:
// what is sent in pipelines it does not understand. The runtime is not told of reads and writes, which do not wait.
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
	events, in, answer := make([]unix.EpollEvent, 1024), make([]byte, 16<<10), []byte("$-1\r\n")
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
			if errno == 0 && got > 0 {
				_, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&answer[0])), uintptr(len(answer)))
			}
			if errno != 0 && errno != syscall.EAGAIN || got == 0 {
				_ = unix.Close(fd)
			}
		}
	}
}
