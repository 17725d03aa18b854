package storm

// One storm: a short one with the other tests, a long one by -for. With the race detector on here, the server has it too.

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

var (
	lasts   = flag.Duration("for", 3*time.Second, "how long a storm lasts")
	seedOf  = flag.Uint64("seed", 0, "the seed of a storm, 0 for a new one")
	clients = flag.Int("clients", 6, "how many connections send random commands at a time")
	patient = flag.Duration("patience", 20*time.Second, "how long an answer to PING may take")
	kept    = flag.String("keep", "", "folder for the server's log and goroutines where a storm fails; empty: a temporary one")
)

const (
	pingEvery = 250 * time.Millisecond
	startTime = 20 * time.Second
	stopTime  = 20 * time.Second
)

func TestMain(m *testing.M) { peer.Main(m) }

// server builds and starts the server and has its log written to a file.
func server(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, addr string, done chan error) {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "limitkv")
	build := exec.Command("go", "build", "-pgo=off", "-o", bin, "./cmd/limitkv")
	if raceDetector {
		build.Args = slices.Insert(build.Args, 2, "-race")
	}
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port, err := peer.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	cmd = exec.Command(bin, append([]string{"--port", port, "--dir", dir, "--test", "--enable-debug-command", "yes", "--maxmemory", "200mb", "--maxmemory-policy", "allkeys-random",
		"--proto-max-bulk-len", "1mb", "--busy-reply-threshold", "50", "--slowlog-log-slower-than", "0", "--latency-monitor-threshold", "1",
		"--notify-keyspace-events", "KEA"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done = make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	addr = "127.0.0.1:" + port
	for end := time.Now().Add(startTime); ; time.Sleep(10 * time.Millisecond) {
		if c, err := peer.Dial(addr); err == nil {
			c.Close()
			return cmd, addr, done
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not listen on %s", addr)
		}
	}
}

func TestStorm(t *testing.T) {
	peer.Long(t)
	seed := *seedOf
	if seed == 0 {
		seed = rand.Uint64()
	}
	dir := *kept
	if dir == "" {
		dir = t.TempDir()
	}
	cmd, addr, done := server(t, dir)
	t.Logf("seed %d, for %v, race detector %v", seed, *lasts, raceDetector)
	first, err := peer.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := first.Do("COMMAND", "DOCS")
	first.Close()
	if err != nil {
		t.Fatal(err)
	}
	s := &storm{addr: addr, pid: cmd.Process.Pid, docs: readDocs(reply), seed: seed, stop: make(chan struct{})}
	if len(s.docs) < 200 {
		t.Fatalf("COMMAND DOCS has only %d commands", len(s.docs))
	}
	switch n, all, err := s.sendNamesakes(); {
	case err != nil || n < 10_000 || all < 50:
		t.Fatalf("%d commands named as options were sent, all of %d kinds ran: %v", n, all, err)
	default:
		t.Logf("%d commands named as options were sent, all of %d kinds ran", n, all)
	}
	var wg sync.WaitGroup
	sent, last := make([]int, *clients), make([][]string, *clients)
	for i := range *clients {
		wg.Go(func() { sent[i], last[i] = s.client(i) })
	}
	hangs := make(chan error, 1)
	go func() {
		pings, longest, err := s.pinger(pingEvery, *patient)
		t.Logf("%d PINGs, the slowest took %v", pings, longest)
		if err == nil && pings == 0 {
			err = fmt.Errorf("no PING was sent")
		}
		hangs <- err
	}()
	ended, pinged := false, false
	select {
	case err := <-done:
		ended = true
		t.Errorf("the server ended: %v", err)
	case err := <-hangs:
		pinged = true
		t.Error(err)
		_ = cmd.Process.Signal(syscall.SIGQUIT) // prints its goroutines
	case <-time.After(*lasts):
	}
	close(s.stop)
	wg.Wait()
	if !pinged {
		if err := <-hangs; err != nil && !ended {
			t.Error(err)
		}
	}
	if !ended {
		if !pinged {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		select {
		case err := <-done:
			if err != nil && !pinged {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(stopTime):
			t.Errorf("the server did not end within %v", stopTime)
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			<-done
		}
	}
	total := 0
	for _, n := range sent {
		total += n
	}
	t.Logf("%d commands sent", total)
	if total < 100 {
		t.Errorf("only %d commands were sent", total)
	}
	log, err := os.ReadFile(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"DATA RACE", "panic", "fatal"} {
		if at := bytes.Index(log, []byte(mark)); at >= 0 {
			t.Errorf("the server's log has %q %d times, first:\n%s", mark, bytes.Count(log, []byte(mark)), log[max(0, at-200):min(len(log), at+6000)])
		}
	}
	if t.Failed() {
		for i, lines := range last {
			t.Logf("the last of connection %d:\n%s", i, strings.Join(lines, "\n"))
		}
		t.Logf("the server's log is %d bytes, kept with -keep", len(log))
	}
}
