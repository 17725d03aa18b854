package main

// Panics and locks that stay locked, wherever they occur: afterwards the server still replies, on every shard, or its process
// has ended with the reason in its log. It never hangs. The server is this test's binary, started again with commands that
// fail on purpose.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// asServer is set in the environment of the server process.
const asServer = "LIMITKV_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serve(time.Now(), os.Args[1:], server.Options{Log: os.Stdout, Families: []func(*server.Server) []*command.Command{faults}})
		return
	}
	os.Exit(m.Run())
}

const planned = "a planned panic"

// fails is the request of a wait that panics when it is served. failing makes such a wait for a command's key.
type fails struct{}

func (fails) Try(*command.Ctx, []byte) (engine.Served, int64) { panic(planned) }

func failing(c *command.Ctx) *command.Wait {
	w := c.NewWait(fails{}, engine.KindString, 0)
	w.Keys = w.Args[1:2]
	return w
}

// faults are commands that fail.
func faults(s *server.Server) []*command.Command {
	s.LocksMax = 300 * time.Millisecond
	var left sync.Mutex
	s.Mutexes = append(s.Mutexes, &left)
	row := func(name, summary string, plan func(c *command.Ctx, set *engine.LockSet) bool, run func(c *command.Ctx)) *command.Command {
		return &command.Command{
			Name: name, Arity: -2, Group: command.GroupServer, Since: "1.0.0", Flags: command.Write,
			Keys:    []command.KeySpec{command.KeyRange(1, 1, 1, command.RW)},
			Summary: summary, Complexity: "O(1)", Syntax: "key [how:string...]", Plan: plan, Run: run,
		}
	}
	return []*command.Command{
		row("fault.before", "Panics.", nil, func(*command.Ctx) { panic(planned) }),
		row("fault.plan", "Panics before it has its locks.", func(*command.Ctx, *engine.LockSet) bool { panic(planned) }, nothing),
		row("fault.read", "Panics when it has read.", nil, func(c *command.Ctx) { c.Get(c.Args[1]); panic(planned) }),
		row("fault.index", "Panics by an index out of range.", nil, func(c *command.Ctx) { _ = c.Args[len(c.Args)] }),
		row("fault.found", "Panics when it has found what it is to change.", nil, func(c *command.Ctx) { c.GetWrite(c.Args[1]); panic(planned) }),
		row("fault.after", "Panics when it has written.", nil, func(c *command.Ctx) { c.PutString(c.Args[1], []byte("half"), 0); panic(planned) }),
		row("fault.outside", "Uses keys that it does not say it has.", nil, func(c *command.Ctx) {
			c.GetWrite(c.Args[1])
			for i := range 100 {
				c.GetWrite(fmt.Append(nil, "other", i))
			}
		}),
		row("fault.serve", "Waits, and panics when it is served.", nil, func(c *command.Ctx) {
			c.Block(failing(c))
		}),
		row("fault.alarm", "Waits for a moment, and panics then.", nil, func(c *command.Ctx) {
			c.Block(failing(c))
			c.Alarm(c.Args[1], c.Now+2000)
		}),
		row("fault.timer", "Has the scheduler panic.", nil, func(c *command.Ctx) {
			c.Server.Keyspace.Sched.At(c.Now+2000, func(int64) { panic(planned) })
			c.OK()
		}),
		row("fault.post", "Has the event loop panic.", nil, func(c *command.Ctx) {
			c.Session.Conn.Post(func() { panic(planned) })
			c.OK()
		}),
		row("fault.look", "Panics while it walks over the whole keyspace.", all, func(c *command.Ctx) {
			c.EachStored(func(engine.Entry) { panic(planned) })
		}),
		row("fault.locks", "Panics and leaves all locks behind.", none, func(c *command.Ctx) {
			var all engine.LockSet
			all.AddAll()
			c.KS.Lock(all)
			panic(planned)
		}),
		row("fault.mutex", "Panics and leaves a lock of its family behind.", none, func(*command.Ctx) {
			left.Lock()
			panic(planned)
		}),
		row("fault.clone", "Has restoring a snapshot panic.", none, func(c *command.Ctx) {
			c.KS.Clone = func(any) any { panic(planned) }
			c.OK()
		}),
		row("fault.wedge", "Never ends, with all locks.", none, func(c *command.Ctx) {
			var all engine.LockSet
			all.AddAll()
			c.KS.Lock(all)
			select {}
		}),
	}
}

func nothing(*command.Ctx) {}

// all is the Plan of a command that needs the whole keyspace.
func all(_ *command.Ctx, set *engine.LockSet) bool { set.AddAll(); return false }

// none is the Plan of a command that takes its locks itself.
func none(*command.Ctx, *engine.LockSet) bool { return false }

// process is a server in its own process.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	done chan struct{}
	mu   sync.Mutex
	log  bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// patience is how long things may take that should happen at once.
const patience = 20 * time.Second

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], append([]string{"--port", "0", "--test", "--enable-debug-command", "yes"}, args...)...)
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, after, ok := strings.Cut(p.Log(), " listens on "); ok {
			p.addr, _, _ = strings.Cut(after, " ")
			return p
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not listen: %s", p.Log())
		}
	}
}

// client is a connection.
type client struct {
	t    *testing.T
	conn net.Conn
	buf  []byte
}

func (p *process) client() *client {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return &client{t: p.t, conn: conn}
}

// send sends commands, one a line.
func (c *client) send(lines ...string) {
	_, _ = io.WriteString(c.conn, strings.Join(lines, "\r\n")+"\r\n") // the server may have ended already
}

// errNoReply: the server sent no reply in time.
var errNoReply = errors.New("no reply")

// reply reads one reply. The error is io.EOF or similar if the connection has ended.
func (c *client) reply(within time.Duration) (string, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	var scan resp.Scanner
	for {
		n, err := scan.Scan(c.buf)
		if err == nil {
			text := string(c.buf[:n])
			c.buf = append(c.buf[:0], c.buf[n:]...)
			return text, nil
		}
		b := make([]byte, 4096)
		n, err = c.conn.Read(b)
		c.buf = append(c.buf, b[:n]...)
		if t, ok := err.(net.Error); ok && t.Timeout() {
			return "", errNoReply
		}
		if n == 0 && err != nil {
			return "", err
		}
	}
}

// want sends a command and compares its reply.
func (c *client) want(line, reply string) {
	c.t.Helper()
	c.send(line)
	if got, err := c.reply(patience); got != reply+"\r\n" {
		c.t.Fatalf("%s: got %q, %v, want %q", line, got, err, reply)
	}
}

// serves checks every shard: it writes a thousand keys, and reads them by a script.
func (p *process) serves() {
	p.t.Helper()
	c := p.client()
	for i := range 1000 {
		c.want(fmt.Sprintf("SET key:%d %d", i, i), "+OK")
	}
	c.want(`EVAL "local n = 0 for i = 0, 999 do n = n + redis.call('GET', 'key:' .. i) end return n" 0`, ":499500")
	c.want("PING", "+PONG")
}

// ended waits for the process to end.
func (p *process) ended(code int, within time.Duration, says string) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.t.Fatalf("the server did not end within %v: %s", within, p.Log())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(p.Log(), says) {
		p.t.Errorf("the server ended with code %d, want %d, and %q in its log:\n%s", got, code, says, p.Log())
	}
}

const internal = "-ERR internal error"

func TestPanicThatLeavesNothingIsAnswered(t *testing.T) {
	p := start(t)
	p.client().want("SET k before", "+OK")
	const wrapped = `EVAL "redis.call('GET', KEYS[1]) return redis.pcall('%s', KEYS[1])" 1 k`
	const long = `EVAL "local i = 0 while i < tonumber(ARGV[1]) do i = i + 1 end return redis.call('%s', KEYS[1])" 1 k 100000`
	tried := 0
	for _, fault := range []string{"fault.before", "fault.read", "fault.index"} {
		for _, line := range []string{fault + " k", fmt.Sprintf(wrapped, fault), fmt.Sprintf(long, fault),
			"EXEC " + fault, "FCALL f 1 k " + fault} {
			c := p.client()
			if rest, ok := strings.CutPrefix(line, "EXEC "); ok {
				c.want("MULTI", "+OK")
				c.want("GET k", "+QUEUED")
				c.want(rest+" k", "+QUEUED")
				line = "EXEC"
			}
			if strings.HasPrefix(line, "FCALL") {
				c.want(`FUNCTION LOAD REPLACE "#!lua name=l\nredis.register_function('f', function(k, a) return redis.call(a[1], k[1]) end)"`, "$1\r\nl")
			}
			c.want(line, internal)
			c.want("GET k", "$6\r\nbefore")
			c.want("GET k", "$6\r\nbefore")
			p.serves()
			tried++
		}
	}
	for _, line := range []string{"fault.plan k", "fault.look k", "fault.outside k"} {
		p.client().want(line, internal)
		p.serves()
		tried++
	}
	time.Sleep(time.Second) // the locks were checked meanwhile
	p.serves()
	if n := strings.Count(p.Log(), "# panic in "); n != tried || n < 10 {
		t.Errorf("%d panics were logged, %d commands panicked", n, tried)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.ended(0, patience, "ready to exit")
}

func TestPanicThatLeavesDoubtEndsTheServer(t *testing.T) {
	for name, script := range map[string][]string{
		"found":            {"fault.found k"},
		"after":            {"fault.after k"},
		"EXEC, after":      {"MULTI", "SET a 1", "fault.before k", "EXEC"},
		"script, after":    {`EVAL "redis.call('SET', KEYS[1], 1) return redis.pcall('fault.before', KEYS[1])" 1 k`},
		"long, after":      {`EVAL "local i = 0 while i < tonumber(ARGV[1]) do i = i + 1 end return redis.call('fault.after', KEYS[1])" 1 k 100000`},
		"serve":            {"fault.serve k"},
		"serve, by EXEC":   {"fault.serve k"},
		"serve, by script": {"fault.serve k"},
		"alarm":            {"fault.alarm k"},
		"timer":            {"fault.timer k"},
		"post":             {"fault.post k"},
		"locks":            {"fault.locks k"},
		"mutex":            {"fault.mutex k"},
		"snapshot":         {"RPUSH l a", "LKV.SNAPSHOT SAVE s", "fault.clone k", "LKV.SNAPSHOT RESTORE s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			p.client().want("RPUSH k a b c", ":3")
			c := p.client()
			c.send(script...)
			if strings.HasPrefix(name, "serve") {
				time.Sleep(50 * time.Millisecond)
				by := map[string][]string{"serve": {"RPUSH k d"}, "serve, by EXEC": {"MULTI", "RPUSH k d", "EXEC"},
					"serve, by script": {`EVAL "return redis.call('RPUSH', KEYS[1], 'd')" 1 k`}}[name]
				p.client().send(by...)
			}
			p.ended(exitFatal, patience, "# fatal: ")
			if !strings.Contains(p.Log(), planned) || !strings.Contains(p.Log(), "fault_test.go:") {
				t.Errorf("the log has no reason, or no stack:\n%s", p.Log())
			}
			// A reply may have come before, but no client waits for ever.
			for {
				if _, err := c.reply(patience); err == errNoReply {
					t.Error("the client waits for a server that is gone")
				} else if err != nil {
					break
				}
			}
		})
	}
}

func TestStuckServerEnds(t *testing.T) {
	const seconds = 2
	for name, end := range map[string]func(p *process, free *client){
		"SIGTERM":         func(p *process, _ *client) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":          func(p *process, _ *client) { _ = p.cmd.Process.Signal(syscall.SIGINT) },
		"SHUTDOWN NOSAVE": func(_ *process, free *client) { free.send("SHUTDOWN NOSAVE") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "--shutdown-timeout", fmt.Sprint(seconds))
			free := p.client()
			free.want("PING", "+PONG")
			p.client().send("fault.wedge k")
			time.Sleep(100 * time.Millisecond)
			if strings.HasPrefix(name, "SIG") {
				for range 8 { // whatever loop they are on, it is blocked
					p.client().send("SET a 1")
				}
			} else {
				for {
					free = p.client() // until it is on a loop that is not blocked
					free.send("PING")
					if _, err := free.reply(100 * time.Millisecond); err == nil {
						break
					}
				}
			}
			began := time.Now()
			end(p, free)
			p.ended(exitStuck, seconds*time.Second+patience, "something is stuck")
			if took := time.Since(began); took > (seconds+8)*time.Second {
				t.Errorf("it took %v, with a shutdown-timeout of %d s", took, seconds)
			}
		})
	}
}

func TestServerEndsAtOnce(t *testing.T) {
	for says, end := range map[string]func(p *process){
		"Received SIGTERM scheduling": func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
		"SHUTDOWN by client":          func(p *process) { p.client().send("SHUTDOWN") },
	} {
		p := start(t)
		p.serves()
		p.client().send("BLPOP nothing 0")
		p.client().send("MULTI")
		began := time.Now()
		end(p)
		p.ended(0, patience, says)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q took %v", says, took)
		}
	}
}
