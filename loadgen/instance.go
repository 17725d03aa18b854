package main

// Servers that the matrix starts itself: new ones, on free ports of this machine, without persistence, otherwise with default
// settings.

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// program is a server to start.
type program struct {
	name, path string
	args       []string
	wrap       []string      // a program, with arguments, that runs the server
	patience   time.Duration // how long it may take to reply; 0: startMax
}

// instance is a running server.
type instance struct {
	*target
	cmd  *exec.Cmd
	done chan struct{}
	// firstReply is the time from its start to the first reply.
	firstReply time.Duration
}

// startMax and stopMax are how long a server may take to reply and to end.
const (
	startMax = 20 * time.Second
	stopMax  = 20 * time.Second
)

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start runs a server until stop.
func (p program) start() (*instance, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &instance{done: make(chan struct{})}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	words := slices.Concat(p.wrap, []string{p.path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1"}, p.args)
	s.cmd = exec.Command(words[0], words[1:]...)
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	for {
		c, err := dial(addr, "")
		if err == nil {
			_, err = c.text("PING")
			c.close()
		}
		if err == nil {
			s.firstReply = time.Since(began)
			break
		}
		select {
		case <-s.done:
			return nil, fmt.Errorf("%s ended before it answered", p.path)
		default:
		}
		if time.Since(began) > cmp.Or(p.patience, startMax) {
			s.stop()
			return nil, fmt.Errorf("%s does not answer", p.path)
		}
		time.Sleep(100 * time.Microsecond)
	}
	if s.target, err = newTarget(addr, ""); err == nil && s.name != p.name {
		err = fmt.Errorf("%s says that it is %s", p.path, s.name)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	if p.wrap == nil { // otherwise newTarget has found the process that listens
		s.pid = s.cmd.Process.Pid
	}
	return s, nil
}

// send sends a process a signal.
func send(pid int, signal os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(signal)
}

// stop ends the server by SIGTERM, and kills it if necessary.
func (s *instance) stop() {
	_ = send(s.pid, syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(stopMax):
		_ = send(s.pid, syscall.SIGKILL)
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// serverArgs turn persistence off and allow enough connections.
var serverArgs = []string{"--save", "", "--appendonly", "no", "--maxclients", "20000"}

// binary returns a server from the environment: X_SERVER, or the built source tree X_SRC.
func binary(prefix, name string) string {
	if path := os.Getenv(prefix + "_SERVER"); path != "" {
		return path
	}
	if tree := os.Getenv(prefix + "_SRC"); tree != "" {
		return filepath.Join(tree, "src", name+"-server")
	}
	return ""
}

// programs returns the servers to compare, limitkv first.
func programs(limitkv, redis, valkey string) (list []program, err error) {
	list = []program{{name: "limitkv", path: limitkv, args: serverArgs}}
	for _, p := range []program{{name: "redis", path: redis, args: serverArgs}, {name: "valkey", path: valkey, args: serverArgs}} {
		if p.path == "" {
			p.path, err = exec.LookPath(p.name + "-server")
			if err != nil {
				return nil, errors.New("there is no " + p.name + "-server: name it with -" + p.name)
			}
		}
		list = append(list, p)
	}
	return list, nil
}
