// Starting and stopping the servers under test: limitkv, built once from this tree, and the real Redis that judges it.
// Each runs as a process of its own and is talked to over TCP, as its users do.

package peer

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// OracleVersion is the Redis whose replies are the truth.
const OracleVersion = "8.0."

// startTimeout and stopTimeout are how long a server may take to answer its first PING and to end after SIGTERM.
const (
	startTimeout = 10 * time.Second
	stopTimeout  = 10 * time.Second
)

// Server is a running server process.
type Server struct {
	Name string // "limitkv" or "redis"
	Addr string // host:port
	cmd  *exec.Cmd
	done chan struct{}
	out  *Tail
}

// Tail keeps the last bytes that a server printed, for the message when it does not start, and where it told of a panic.
type Tail struct {
	mu    sync.Mutex
	b     []byte
	panic []byte
}

// panicLine is how limitkv's log tells of a command that panicked and changed nothing: its client was answered with an error.
var panicLine = []byte("# panic in ")

// tailMax is how much of a server's output is kept.
const tailMax = 64 << 10

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if i := bytes.Index(p, panicLine); i >= 0 && t.panic == nil {
		t.panic = bytes.Clone(p[i:])
	}
	if len(t.b) > tailMax {
		t.b = append(t.b[:0], t.b[len(t.b)-tailMax:]...)
	}
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}

// FreePort asks the system for a port that nothing listens on.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// Start runs a server binary on a free port of 127.0.0.1 and waits until it answers PING, and has loaded unless that is
// to be slow (key-load-delay). The other arguments are passed on, a configuration file being the first. The caller stops
// it.
func Start(name, binary string, args ...string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: name, Addr: "127.0.0.1:" + port, out: &Tail{}, done: make(chan struct{})}
	file := 0
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		file = 1
	}
	s.cmd = exec.Command(binary, slices.Concat(args[:file], []string{"--port", port, "--bind", "127.0.0.1"}, args[file:])...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(2 * time.Millisecond) {
		if c, err := Dial(s.Addr); err == nil {
			var v Value
			v, err = c.Do("PING")
			c.Close()
			if err == nil && (!strings.HasPrefix(v.Text, "LOADING") || slices.Contains(args, "--key-load-delay")) {
				return s, nil
			}
		}
		select {
		case <-s.done:
			return nil, fmt.Errorf("%s ended before it answered: %s", name, s.out)
		default:
		}
		if time.Now().After(deadline) {
			s.Stop()
			return nil, fmt.Errorf("%s did not answer within %v: %s", name, startTimeout, s.out)
		}
	}
}

// Stop ends the server as an operator does, by SIGTERM, and makes sure of it by its process id.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// Kill ends the server as a power cut ends it, by SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.done
}

// Signal sends the server's process a signal.
func (s *Server) Signal(signal os.Signal) error { return s.cmd.Process.Signal(signal) }

// Pid is the server's process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Alive says whether the process still runs.
func (s *Server) Alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Output is the last of what the server printed.
func (s *Server) Output() string { return s.out.String() }

// Says waits until the server has printed some texts, or fails the test. They may come later than a reply that was sent
// after them.
func (s *Server) Says(tb testing.TB, texts ...string) {
	tb.Helper()
	end := time.Now().Add(ReplyTimeout)
	for _, text := range texts {
		for ; !strings.Contains(s.Output(), text); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				tb.Fatalf("%s does not say %q:\n%s", s.Name, text, s.Output())
			}
		}
	}
}

// Dial connects to the server, or fails the test.
func (s *Server) Dial(tb testing.TB) *Conn {
	tb.Helper()
	c, err := Dial(s.Addr)
	if err != nil {
		tb.Fatalf("%s: %v\n%s", s.Name, err, s.Output())
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// ModuleRoot is the folder of go.mod, found upwards from where the test runs.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// Build compiles limitkv, once in a process, and returns the path of the binary: LIMITKV_BIN where that is set. It is compiled as
// the tests are, without the profile: packages are not compiled a second time.
func Build() (string, error) { return build() }

var build = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("LIMITKV_BIN"); bin != "" {
		return bin, nil
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "limitkv-conformance-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	bin := filepath.Join(dir, "limitkv")
	cmd := exec.Command("go", "build", "-pgo=off", "-o", bin, "./cmd/limitkv")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/limitkv: %v\n%s", err, out)
	}
	return bin, nil
})

// buildDir is where build put the binary, "" where it did not.
var buildDir string

// Cleanup removes the binary that was built. TestMain calls it at the end.
func Cleanup() {
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
}

// LimitKV starts this tree's server (or LIMITKV_BIN) for one test.
func LimitKV(tb testing.TB, args ...string) *Server {
	tb.Helper()
	bin, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	args = slices.Clone(args)
	for _, usual := range [][2]string{{"--enable-debug-command", "yes"}, {"--save", ""}, {"--dir", ""}} { // a config file would come first
		if usual[0] == "--dir" {
			usual[1] = tb.TempDir() // the tree stays as it is
		}
		if !slices.Contains(args, usual[0]) {
			args = append(args, usual[:]...)
		}
	}
	s := started(tb, "limitkv", bin, args...)
	tb.Cleanup(func() {
		s.out.mu.Lock()
		defer s.out.mu.Unlock()
		if s.out.panic != nil {
			tb.Errorf("limitkv told of a bug:\n%s", s.out.panic)
		}
	})
	return s
}

// ErrNoOracle says that there is no Redis to compare with.
var ErrNoOracle = errors.New("no Redis " + OracleVersion + "x to compare with: set REDIS_SERVER to its redis-server, or put it in PATH")

// oracle finds the real Redis and makes sure of its version.
var oracle = sync.OnceValues(func() (string, error) {
	bin := os.Getenv("REDIS_SERVER")
	if bin == "" {
		found, err := exec.LookPath("redis-server")
		if err != nil {
			return "", ErrNoOracle
		}
		bin = found
	}
	out, err := exec.Command(bin, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w (%s --version: %v)", ErrNoOracle, bin, err)
	}
	if !strings.Contains(string(out), " v="+OracleVersion) {
		return "", fmt.Errorf("%w (%s is %s)", ErrNoOracle, bin, strings.TrimSpace(string(out)))
	}
	return bin, nil
})

// Tool finds a program of the Redis that is compared with: beside REDIS_SERVER or in PATH, where another Redis's may be. Without it
// the test is skipped, or fails if required is true.
func Tool(tb testing.TB, name string, required bool) string {
	tb.Helper()
	path, err := tool(name)
	if err != nil {
		if required {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	return path
}

func tool(name string) (string, error) {
	found := []string{filepath.Join(filepath.Dir(os.Getenv("REDIS_SERVER")), name)}
	if os.Getenv("REDIS_SERVER") == "" {
		found = nil
	}
	if path, err := exec.LookPath(name); err == nil {
		found = append(found, path)
	}
	reason := "there is none"
	for _, path := range found {
		out, err := exec.Command(path, "--version").CombinedOutput()
		text, _, _ := strings.Cut(string(out), "\n")
		if err == nil && (strings.Contains(text, " v="+OracleVersion) || strings.HasPrefix(text, name+" "+OracleVersion)) {
			return path, nil
		}
		reason = fmt.Sprintf("%s is %q", path, text)
	}
	return "", fmt.Errorf("no %s of Redis %sx beside REDIS_SERVER or in PATH: %s", name, OracleVersion, reason)
}

// Redis starts the real Redis for one test. Where there is none the test is skipped, or fails if required is true.
func Redis(tb testing.TB, required bool, args ...string) *Server {
	tb.Helper()
	bin, err := oracle()
	if err != nil {
		if required {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	return Like(tb, "redis", bin, args...)
}

// Like runs another server of Redis's kind, as Redis does, for the test.
func Like(tb testing.TB, name, bin string, args ...string) *Server {
	tb.Helper()
	return started(tb, name, bin, append([]string{"--save", "", "--dir", tb.TempDir(), "--enable-debug-command", "yes"}, args...)...)
}

func started(tb testing.TB, name, bin string, args ...string) *Server {
	tb.Helper()
	s, err := Start(name, bin, args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	running.Store(s, tb)
	tb.Cleanup(func() {
		running.Delete(s)
		if tb.Failed() && !s.Alive() {
			tb.Logf("%s at %s has ended: %v\n%s", name, s.Addr, s.cmd.ProcessState, s.Output())
		}
	})
	return s
}

// running has the servers of tests, each with its test.
var running sync.Map

// stuck logs what the servers of a test that waits in vain are doing, and ends them: Go's runtime tells of its goroutines at
// SIGQUIT.
func stuck(tb testing.TB) {
	running.Range(func(server, test any) bool {
		if s := server.(*Server); test == tb && s.Name == "limitkv" && s.Signal(syscall.SIGQUIT) == nil && s.Ends(stopTimeout) {
			tb.Logf("%s at %s was doing:\n%s", s.Name, s.Addr, s.Output())
		}
		return true
	})
}
