// Starting: how soon a server for tests is there, and with what files. One static binary, started as a test suite starts
// it, replies within 20 ms of its start; what people run is what is measured: the process, the line that names the port, a
// connection, a PING.
package conformance

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// firstReplyMax is how long it may take from the start of the process to the reply of the first command.
const firstReplyMax = 20 * time.Millisecond

// A median of so many starts counts; where other work delays it, as on a CI machine that several share, the best of so
// many medians.
const (
	startsPerRound = 9
	roundsMax      = 10
	betweenRounds  = 200 * time.Millisecond
)

func TestFirstReply(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	best := time.Duration(0)
	for round := range roundsMax {
		if round > 0 {
			time.Sleep(betweenRounds)
		}
		var took []time.Duration
		for range startsPerRound {
			took = append(took, firstReply(t, bin))
		}
		slices.Sort(took)
		median := took[len(took)/2]
		if best == 0 || median < best {
			best = median
		}
		t.Logf("from start to first reply: %v, at least %v, at most %v", median, took[0], took[len(took)-1])
		if best <= firstReplyMax {
			return
		}
	}
	t.Errorf("the first reply takes %v (the best median of %d starts each), more than %v", best, startsPerRound, firstReplyMax)
}

// listens is what a server that is ready says of where the server can be reached.
var listens = regexp.MustCompile(`listens on (127\.0\.0\.1:\d+)`)

// firstReply starts the server once and measures until PING is answered.
func firstReply(t *testing.T, bin string) time.Duration {
	t.Helper()
	cmd := exec.Command(bin, "--test", "--port", "0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var m []string
	for lines := bufio.NewScanner(stdout); m == nil; m = listens.FindStringSubmatch(lines.Text()) {
		if !lines.Scan() {
			t.Fatalf("the server ended: %v", lines.Err())
		}
	}
	c, err := peer.Dial(m[1])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Do("PING")
	took := time.Since(began)
	if err != nil || v.Text != "PONG" {
		t.Fatalf("PING: %v %v", v, err)
	}
	return took
}

// Who cannot write its log says so and ends, and never that it listens.
func TestNotReady(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "appendonlydir"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "--port", "0", "--dir", dir, "--appendonly", "yes").CombinedOutput()
	if err == nil || listens.Match(out) || !bytes.Contains(out, []byte("appendonlydir")) {
		t.Errorf("it ends by %v and prints\n%s", err, out)
	}
}

// The binary needs nothing of the system that it is copied to: no interpreter, no library.
func TestStaticBinary(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(bin)
	var format *elf.FormatError
	if errors.As(err, &format) {
		t.Skip("static linking is looked at where binaries are ELF")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is linked dynamically: it has a segment %v", filepath.Base(bin), p.Type)
		}
	}
	if libs, _ := f.ImportedLibraries(); len(libs) > 0 {
		t.Errorf("it needs %v", libs)
	}
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`\tCGO_ENABLED=0 \$\(GO\) build .*-o \$\(BIN\) \./cmd/limitkv\n`).Match(makefile) {
		t.Error("make build does not build as the tests do: with CGO_ENABLED=0")
	}
}

// Systemd is told when the server is ready and when it ends; the process id is in a file meanwhile.
func TestSupervised(t *testing.T) {
	dir := t.TempDir()
	socket, pidfile := filepath.Join(dir, "notify"), filepath.Join(dir, "pid")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	s := peer.LimitKV(t, "--supervised", "auto", "--pidfile", pidfile)
	message := func() string {
		b := make([]byte, 1000)
		_ = l.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := message(); !strings.Contains(got, "\nREADY=1\n") {
		t.Errorf("at the start systemd is told %q", got)
	}
	if b, err := os.ReadFile(pidfile); err != nil || string(b) != fmt.Sprintln(s.Pid()) {
		t.Errorf("the file of the process id has %q, %v", b, err)
	}
	v, err := s.Dial(t).Do("INFO", "server")
	if err != nil || !strings.Contains(v.Text, "process_supervised:systemd\r\n") {
		t.Error(v, err)
	}
	s.Stop()
	if got := message(); got != "STOPPING=1\n" {
		t.Errorf("at the end systemd is told %q", got)
	}
	if _, err := os.Stat(pidfile); !os.IsNotExist(err) {
		t.Errorf("the file of the process id is still there: %v", err)
	}
}

// CONFIG REWRITE keeps the users of now in the file that the server was started with.
func TestUsersAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "redis.conf")
	const before = "# users\nuser old on >secret ~* +@all\nuser gone on nopass\nmaxmemory 1gb\n"
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	s := peer.LimitKV(t, file)
	c := s.Dial(t)
	for range 2 {
		for _, line := range []string{"ACL SETUSER new on >word ~k* +get", "ACL SETUSER old -set", "ACL DELUSER gone", "CONFIG REWRITE"} {
			if v, err := c.Do(strings.Fields(line)...); err != nil || v.IsError() {
				t.Fatal(line, v, err)
			}
		}
	}
	want, err := c.Do("ACL", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	again := peer.LimitKV(t, file).Dial(t)
	got, err := again.Do("ACL", "LIST")
	if err != nil || !got.Equal(want) || len(got.Items) != 3 {
		t.Errorf("started again the users are %v, not %v (%v)", got, want, err)
	}
	text, err := os.ReadFile(file)
	if n := strings.Count(string(text), "\nuser "); err != nil || n != 3 || !strings.HasPrefix(string(text), "# users\nuser ") {
		t.Errorf("the file has %d users: %v\n%s", n, err, text)
	}
}

// redisConf are lines that people have in a redis.conf, most of which tell limitkv nothing.
const redisConf = `
bind * -::*
protected-mode no
tcp-backlog 511
timeout 0
daemonize no
supervised auto
loglevel notice
save ""
stop-writes-on-bgsave-error no
rdbcompression yes
dbfilename dump.rdb
replicaof no one
replica-serve-stale-data yes
maxmemory 100mb
maxmemory-policy allkeys-lru
lazyfree-lazy-eviction yes
io-threads 4
io-threads-do-reads yes
oom-score-adj no
appendonly no
appendfsync everysec
lua-time-limit 5000
slowlog-log-slower-than 10000
notify-keyspace-events "Ex"
hash-max-ziplist-entries 512
list-max-ziplist-size -2
activerehashing yes
activedefrag yes
client-output-buffer-limit replica 256mb 64mb 60
hz 10
dynamic-hz yes
jemalloc-bg-thread yes
rename-command FLUSHALL ""
user worker on >secret ~* +@all
`

// A redis.conf can be taken as it is, save where it asks for what is not there.
func TestRedisConf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(file, []byte(redisConf+"dir "+filepath.Dir(file)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := peer.LimitKV(t, file)
	c := s.Dial(t)
	for _, ask := range []struct{ want, command, argument string }{
		{"OK", "AUTH", "worker secret"},
		{"[maxmemory 104857600]", "CONFIG", "GET maxmemory"},
		{"[hash-max-listpack-entries 512]", "CONFIG", "GET hash-max-listpack-entries"},
		{"[replicaof ]", "CONFIG", "GET replicaof"},
		{"ERR unknown command 'FLUSHALL', with args beginning with: ", "FLUSHALL", ""},
	} {
		v, err := c.Do(append([]string{ask.command}, strings.Fields(ask.argument)...)...)
		if err != nil {
			t.Fatal(err)
		}
		got := v.Text
		if v.Kind == '*' {
			got = "[" + v.Items[0].Text + " " + v.Items[1].Text + "]"
		}
		if got != ask.want {
			t.Errorf("%s %s: %q, not %q", ask.command, ask.argument, got, ask.want)
		}
	}
	s.Says(t, "io-threads has no effect", "io-threads-do-reads has no effect", "activedefrag has no effect")
	for _, name := range []string{"replica-announce-ip", "replica-priority", "cluster-announce-ip", "tls-replication", "shutdown-on-sigterm"} {
		if strings.Contains(s.Output(), name+" has no effect") {
			t.Errorf("the log says that %s has no effect:\n%s", name, s.Output())
		}
	}
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"appendonly maybe", "daemonize yes", "maxmemori 1gb"} {
		if err := os.WriteFile(file, []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(bin, file, "--port", "0").CombinedOutput()
		if name, _, _ := strings.Cut(line, " "); err == nil || !strings.Contains(string(out), "redis.conf:1: ") || !strings.Contains(string(out), name) {
			t.Errorf("with %q it says %q, %v", line, out, err)
		}
	}
}

// What starts redis-server for tests finds in limitkv's words what it looks for in redis-server's.
func TestWordsOfRedisServer(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^Redis server v=8\.0\.6 sha=\w+:\d malloc=\S+ bits=(64|32) build=\w+ limitkv=[\d.]+\n$`)
	for _, flag := range []string{"--version", "-v"} {
		if out, err := exec.Command(bin, flag).Output(); err != nil || !version.Match(out) {
			t.Errorf("%s prints %q: %v", flag, out, err)
		} else if first := regexp.MustCompile(`\d+(\.\d+)+`).Find(out); string(first) != "8.0.6" {
			t.Errorf("the first version in %q is %s", out, first)
		}
	}
	cmd := exec.Command(bin, "--port", "0", "--save", "")
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	const logged = `\d+:M \d\d \w+ \d{4} [\d:.]+ \* `
	for _, words := range []string{
		logged + `limitkv [\d.]+ is starting; it speaks as Redis version=8\.0\.6, bits=(64|32), pid=\d+, just started`,
		logged + `Running mode=standalone, port=\d+\.`, logged + "Server initialized",
		`limitkv [\d.]+ ` + listens.String() + ` \(pid \d+, up in [\d.]+ ms\)`, logged + "Ready to accept connections tcp",
	} {
		line, _ := lines.ReadString('\n')
		if !regexp.MustCompile(`^` + words + `\n$`).MatchString(line) {
			t.Errorf("it prints %q where %q was to come", line, words)
		}
	}
	stdout.Close() // whoever read the log may go
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
