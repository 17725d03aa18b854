package main

// A network and processes of its own for each run. This program starts itself anew in it: there are no ports but those of
// the suite's servers, two runs do not meet, and nothing that a suite starts outlives it.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/limitkv/limitkv/conformance/peer"
)

// insideWord is the argument of the program that runs in the new network.
const insideWord = "inside-of-a-network"

// suiteMax is the longest that a suite may take.
const suiteMax = 30 * time.Minute

// order is what is run in the new network; it comes as JSON on the standard input.
type order struct {
	Binary  string
	Servers [][]string
	Dir     string // of the servers, each gets a folder in it
	Args    []string
	WorkDir string
	Prove   bool // that the servers' effects are enough

	provers []func() (*peer.Prover, error) // end what proves it for a server
}

// inSpace runs a command in a new network, with the suite's servers in it, and has what it prints written to a file. That
// tests fail is no error.
func (s suite) inSpace(cmd *exec.Cmd, binary, dir, log string, prove bool) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	o := order{Binary: binary, Servers: s.servers, Dir: dir, Args: cmd.Args, WorkDir: cmd.Dir, Prove: prove}
	if o.Servers == nil {
		o.Servers = usual
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), suiteMax)
	defer cancel()
	self := exec.CommandContext(ctx, "/proc/self/exe", insideWord)
	// Some suites start servers of their own.
	programs := filepath.Join(dir, "bin")
	if err := os.Mkdir(programs, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(binary, filepath.Join(programs, "redis-server")); err != nil {
		return err
	}
	path := "PATH=" + programs
	for _, v := range cmd.Env {
		if rest, ok := strings.CutPrefix(v, "PATH="); ok {
			path = "PATH=" + programs + ":" + rest
		}
	}
	self.Env = append(cmd.Env, path)
	self.Stdin, self.Stdout, self.Stderr = strings.NewReader(string(b)), out, out
	// Its end is the end of all that it started.
	self.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		self.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		self.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		self.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		self.SysProcAttr.AmbientCaps = []uintptr{capNetAdmin, capSysAdmin}
	}
	if err := self.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, tail(log))
	}
	return nil
}

// Linux's CAP_NET_ADMIN and CAP_SYS_ADMIN: the rights to bring the loopback interface up and to mount /proc.
const (
	capNetAdmin = 12
	capSysAdmin = 21
)

// inside is the program in the new network.
func inside() error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	// Programs find the processes that they started in /proc.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	for _, args := range o.Servers {
		if o.Prove {
			args = append(args, "--test")
		}
		if err := o.serve(args); err != nil {
			return err
		}
		if o.Prove {
			if err := o.prove(args); err != nil {
				return err
			}
		}
	}
	cmd := exec.Command(o.Args[0], o.Args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.WorkDir, os.Stdout, os.Stderr
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		return err
	}
	return o.proven()
}

// prove begins to prove that a server's effects are enough.
func (o *order) prove(server []string) error {
	password := ""
	if i := slices.Index(server, "--requirepass"); i >= 0 {
		password = server[i+1]
	}
	p, err := peer.Prove("127.0.0.1:"+server[0], password)
	if err != nil {
		return err
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- p.Run(stop) }()
	o.provers = append(o.provers, func() (*peer.Prover, error) {
		close(stop)
		return p, <-done
	})
	return nil
}

// proven ends what prove began, and writes what came of it.
func (o *order) proven() error {
	if !o.Prove {
		return nil
	}
	var b strings.Builder
	for _, end := range o.provers {
		p, err := end()
		fmt.Fprintf(&b, "%d effects, compared %d times\n", p.Effects, p.Checks)
		if err != nil {
			fmt.Fprintf(&b, "FAIL %v\n", err)
		}
	}
	return os.WriteFile(filepath.Join(o.Dir, proofFile), []byte(b.String()), 0o644)
}

// serve starts a server and waits until it listens.
func (o order) serve(args []string) error {
	dir, err := os.MkdirTemp(o.Dir, "server-")
	if err != nil {
		return err
	}
	server := exec.Command(o.Binary, append([]string{"--port", args[0], "--save", "", "--dir", dir}, args[1:]...)...)
	log, err := os.Create(dir + "/log")
	if err != nil {
		return err
	}
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(startPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := peer.Dial("127.0.0.1:" + args[0]); err == nil {
			return c.Close()
		}
	}
	said, _ := os.ReadFile(dir + "/log")
	return fmt.Errorf("the server does not listen: %s", said)
}

// startPatience is the longest that a server may take to listen.
const startPatience = 30 * time.Second

// loopback brings the loopback interface up.
func loopback() error {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := l.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	var failed syscall.Errno
	err = conn.Control(func(fd uintptr) {
		request := struct {
			name  [16]byte
			flags uint16
			_     [22]byte
		}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
		copy(request.name[:], "lo")
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	})
	if err != nil {
		return err
	}
	if failed != 0 {
		return failed
	}
	return nil
}
