package conformance

// File descriptors: a server promises no more clients than the system lets it serve, and what becomes of clients when there
// are none left all the same.

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limitkv/limitkv/conformance/peer"
)

// underLimit is a program that runs bin with so many file descriptors, and two event loops, which take some.
func underLimit(t *testing.T, bin string, soft, hard int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limited")
	script := fmt.Sprintf("#!/bin/sh\nexport GOMAXPROCS=2\nulimit -Sn %d && ulimit -Hn %d && exec '%s' \"$@\"\n", soft, hard, bin)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// sayHello connects and returns the first line of what comes back on a PING, which is empty if the connection is closed, and
// "nothing" if none comes in time.
func sayHello(t *testing.T, addr string, patience time.Duration) (net.Conn, string) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_, _ = nc.Write([]byte("PING\r\n"))
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(nc).ReadString('\n')
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return nc, "nothing"
	}
	return nc, strings.TrimSpace(line)
}

func TestMaxClientsFitsDescriptors(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"limitkv": bin}
	if bin := os.Getenv("REDIS_SERVER"); bin != "" {
		programs["redis"] = bin
	}
	for name, bin := range programs {
		t.Run(name, func(t *testing.T) {
			const limit = 100
			s := peer.Like(t, name, underLimit(t, bin, 80, limit))
			c := s.Dial(t)
			v, err := c.Do("CONFIG", "GET", "maxclients")
			if err != nil || len(v.Items) != 2 {
				t.Fatal(v, err)
			}
			n, err := strconv.Atoi(v.Items[1].Text)
			if err != nil || n < 20 || n > limit-32 {
				t.Fatalf("%d clients with %d descriptors", n, limit)
			}
			s.Says(t, "You requested maxclients of 10000 requiring at least 10", fmt.Sprintf("maxclients has been reduced to %d to compensate for low ulimit.", n))
			for _, set := range [][2]string{
				{strconv.Itoa(n + 1), fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle the specified number of clients, try with %d", n)},
				{"4294967295", fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle the specified number of clients, try with %d", n)},
				{"4294967296", "ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967295 inclusive"},
				{"x", "ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into an integer"},
				{strconv.Itoa(n - 1), "OK"}, {strconv.Itoa(n), "OK"},
			} {
				if name == "redis" && set[0] == "4294967295" {
					continue // it tries every sixteenth number below that
				}
				if v, err := c.Do("CONFIG", "SET", "maxclients", set[0]); err != nil || v.Text != set[1] {
					t.Errorf("CONFIG SET maxclients %s: %v %v, want %s", set[0], v, err, set[1])
				}
			}
			var last net.Conn
			for i := 1; i < n; i++ { // c is one of them
				nc, line := sayHello(t, s.Addr, peer.ReplyTimeout)
				if line != "+PONG" {
					t.Fatalf("client %d of %d: %q", i, n, line)
				}
				last = nc
			}
			for range 2 * limit {
				if _, line := sayHello(t, s.Addr, peer.ReplyTimeout); line != "-ERR max number of clients reached" {
					t.Fatalf("one too many: %q", line)
				}
			}
			last.Close()
			servedAgain(t, s)
		})
	}
	out, err := exec.Command(underLimit(t, bin, 20, 20), "--port", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Your current 'ulimit -n' of 20 is not enough for the server to start. Please increase your open file limit to at least 10") {
		t.Errorf("with 20 descriptors it says %v and %s", err, out)
	}
}

func servedAgain(t *testing.T, s *peer.Server) {
	t.Helper()
	for end := time.Now().Add(peer.ReplyTimeout); ; time.Sleep(10 * time.Millisecond) {
		if _, line := sayHello(t, s.Addr, peer.ReplyTimeout); line == "+PONG" {
			return
		} else if time.Now().After(end) {
			t.Fatalf("with room again: %q", line)
		}
	}
}

// TestNoDescriptors lowers the limit under a running server: to as many as are in use, when clients are told, and to none,
// when they wait. Neither keeps a processor busy, those who are connected are served, and so is everybody afterwards.
func TestNoDescriptors(t *testing.T) {
	s := peer.LimitKV(t)
	c := s.Dial(t)
	ping := func() {
		t.Helper()
		if v, err := c.Do("PING"); err != nil || v.Text != "PONG" {
			t.Fatal(v, err)
		}
	}
	ping()
	var was unix.Rlimit
	limit := func(n uint64) {
		t.Helper()
		if err := unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: was.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	limit(firstFree(t, s.Pid()))
	for range 50 {
		if _, line := sayHello(t, s.Addr, peer.ReplyTimeout); line != "-ERR max number of clients reached" {
			t.Fatalf("without a descriptor: %q", line)
		}
	}
	ping()
	limit(was.Cur)
	servedAgain(t, s)

	limit(3)
	before := processorTime(t, s.Pid())
	waiting, line := sayHello(t, s.Addr, time.Second)
	if line != "nothing" {
		t.Fatalf("with not even one to refuse: %q", line)
	}
	if took := processorTime(t, s.Pid()) - before; took > 300*time.Millisecond {
		t.Errorf("a client that waits for a second takes %v of processor time", took)
	}
	ping()
	limit(was.Cur)
	_ = waiting.SetReadDeadline(time.Now().Add(peer.ReplyTimeout))
	if line, err := bufio.NewReader(waiting).ReadString('\n'); line != "+PONG\r\n" {
		t.Errorf("who waited is told %q, %v", line, err)
	}
	const told = "no file descriptor is left"
	s.Says(t, told)
	if n := strings.Count(s.Output(), told); n != 1 {
		t.Errorf("the log says %d times that %s:\n%s", n, told, s.Output())
	}

	limit(firstFree(t, s.Pid())) // there is a spare one again
	if _, line := sayHello(t, s.Addr, peer.ReplyTimeout); line == "nothing" {
		t.Error("there is no spare descriptor")
	}
	limit(was.Cur)
	servedAgain(t, s)
}

// firstFree is the lowest number of a descriptor that a process does not have.
func firstFree(t *testing.T, pid int) uint64 {
	t.Helper()
	for n := uint64(0); ; n++ {
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, n)); os.IsNotExist(err) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// processorTime is what a process took so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
