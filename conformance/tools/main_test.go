// Package tools runs the tools that people have for Redis against limitkv and the real Redis, with the same data, and
// compares what they print: redis-cli in all its modes (cli_test.go), and what redis_exporter reads (info_test.go). What is
// shown over HTTP is looked at by Prometheus's own checker and a real browser (web_test.go).
// The tools are Redis's own, found beside REDIS_SERVER or in PATH.
package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// toolTimeout is how long a tool may take that ends by itself.
const toolTimeout = 30 * time.Second

// interruptTime is how long one may take that was interrupted.
const interruptTime = 200 * time.Millisecond

func TestMain(m *testing.M) { peer.Main(m) }

// required: where CI is set a missing Redis or tool is a failure.
var required = os.Getenv("CI") != ""

// find looks a tool of Redis's up. Without it the test is skipped, or fails if it is required.
func find(tb testing.TB, tool string) string {
	tb.Helper()
	return peer.Tool(tb, tool, required)
}

// pair is the real Redis and limitkv.
type pair struct{ redis, limitkv *peer.Server }

// start runs both with the same arguments; limitkv has unix sockets beside.
func start(tb testing.TB, args ...string) pair {
	tb.Helper()
	return pair{peer.Redis(tb, required, args...), peer.LimitKV(tb, args...)}
}

func (p pair) each() []*peer.Server { return []*peer.Server{p.redis, p.limitkv} }

// load sends commands to both.
func (p pair) load(tb testing.TB, lines string) {
	tb.Helper()
	for _, s := range p.each() {
		load(tb, s, lines)
	}
}

// load sends commands, a line each in the words of redis-cli.
func load(tb testing.TB, s *peer.Server, lines string) {
	tb.Helper()
	c := s.Dial(tb)
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		args, err := recorded.Split(line)
		if err != nil {
			tb.Fatal(err)
		}
		if len(args) == 0 {
			continue
		}
		if v, err := c.Do(args...); err != nil || v.IsError() {
			tb.Fatalf("%s: %s: %v, %v", s.Name, line, v, err)
		}
	}
}

// call is a run of a tool.
type call struct {
	args  []string // {host}, {port} and so on are replaced, see fill
	stdin string
	env   []string
	// until is what the tool has printed when it is interrupted, as by Ctrl-C, if it does not end by itself.
	until *regexp.Regexp
	// typed is what is typed at a terminal, a line whenever the tool prompts for one; nil if it has no terminal.
	typed []string
}

// result is how it ended.
type result struct {
	output string // standard output and errors
	code   int
}

// run runs a tool on a server.
func run(tb testing.TB, tool string, s *peer.Server, c call) result {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), toolTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, fill(s, c.args)...)
	cmd.Dir = tb.TempDir() // for what it writes
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "LC_ALL=C.UTF-8"}, c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	out := &watched{until: c.until, enough: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	var shown chan struct{}
	if c.typed != nil {
		master, slave := terminal(tb, cmd)
		out.typed, out.keys = c.typed, master
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		shown = make(chan struct{})
		go func() {
			defer close(shown)
			_, _ = io.Copy(out, master) // ends with an error, the tool having ended
		}()
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	if c.typed != nil {
		cmd.Stdin.(*os.File).Close()
	}
	if c.until != nil {
		go func() {
			select {
			case <-out.enough:
				_ = cmd.Process.Signal(syscall.SIGINT)
				time.Sleep(interruptTime)
				_ = cmd.Process.Kill() // where Ctrl-C leads back to the prompt
			case <-ctx.Done():
			}
		}()
	}
	err := cmd.Wait()
	if shown != nil {
		<-shown
	}
	if ctx.Err() != nil {
		tb.Fatalf("%s: %s does not end: %s", s.Name, strings.Join(c.args, " "), out.b.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	output := out.b.String()
	if c.until != nil {
		if end := c.until.FindStringIndex(output); end != nil {
			output = output[:end[1]]
		}
	}
	return result{output, cmd.ProcessState.ExitCode()}
}

// watched keeps what a tool prints and says when it is enough. One goroutine of os/exec writes to it.
type watched struct {
	b      bytes.Buffer
	until  *regexp.Regexp
	enough chan struct{}
	closed bool
	// typed is what is still to be typed with keys: the next of it once there is a prompt behind seen.
	typed []string
	keys  io.Writer
	seen  int
}

// prompt is a new one: redis-cli writes it again with each key.
var prompt = regexp.MustCompile(`(^|\n)127\.0\.0\.1:\d+(\[\d+\])?(\(TX\))?> $`)

func (w *watched) Write(p []byte) (int, error) {
	w.b.Write(p)
	if len(w.typed) > 0 && prompt.Match(w.b.Bytes()[w.seen:]) {
		w.seen = w.b.Len()
		_, _ = io.WriteString(w.keys, w.typed[0])
		w.typed = w.typed[1:]
	}
	if w.until != nil && !w.closed && w.until.Match(w.b.Bytes()) {
		close(w.enough)
		w.closed = true
	}
	return len(p), nil
}

// fill puts a server's address into arguments.
func fill(s *peer.Server, args []string) []string {
	host, port, _ := net.SplitHostPort(s.Addr)
	r := strings.NewReplacer("{host}", host, "{port}", port, "{addr}", s.Addr)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = r.Replace(a)
	}
	return out
}
