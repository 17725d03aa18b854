// Input that no good client sends: malformed frames are answered byte for byte as the real Redis answers them, and
// nothing that one client does – bad frames, half a command, reading nothing, a script without end – keeps the server
// from serving another, which is asserted all along by a bystander.
package conformance

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// frames are what is sent, by name. What a server must say to them is what Redis says.
var frames = []struct{ name, send string }{
	{"negative bulk length", "*2\r\n$3\r\nGET\r\n$-5\r\n"},
	{"bulk length -1", "*2\r\n$3\r\nGET\r\n$-1\r\n"},
	{"bulk length beyond 512 MB", "*2\r\n$3\r\nGET\r\n$536870913\r\n"},
	{"bulk length beyond int64", "*2\r\n$3\r\nGET\r\n$9223372036854775808\r\n"},
	{"bulk length no number", "*2\r\n$3\r\nGET\r\n$abc\r\n"},
	{"bulk length empty", "*2\r\n$3\r\nGET\r\n$\r\n"},
	{"bulk length with plus", "*1\r\n$+4\r\nPING\r\n"},
	{"bulk length with space", "*1\r\n$ 4\r\nPING\r\n"},
	{"bulk length with zeros", "*1\r\n$04\r\nPING\r\n"},
	{"no dollar", "*1\r\nPING\r\n"},
	{"status instead of bulk", "*1\r\n+PING\r\n"},
	{"integer instead of bulk", "*2\r\n$3\r\nGET\r\n:1\r\n"},
	{"nested array", "*1\r\n*1\r\n$4\r\nPING\r\n"},
	{"unprintable instead of dollar", "*1\r\n\x00abc\r\n"},
	{"count negative", "*-1\r\nPING\r\n"},
	{"count -2", "*-2\r\nPING\r\n"},
	{"count zero", "*0\r\nPING\r\n"},
	{"count too large", "*2147483648\r\n"},
	{"count at the limit", "*2147483647\r\n"},
	{"count beyond a million", "*1048577\r\n"},
	{"count no number", "*abc\r\n"},
	{"count empty", "*\r\n"},
	{"count with plus", "*+1\r\n$4\r\nPING\r\n"},
	{"count with space", "* 1\r\n$4\r\nPING\r\n"},
	{"count with zeros", "*01\r\n$4\r\nPING\r\n"},
	{"count line too long", "*" + strings.Repeat("1", 70_000)},
	{"bulk line too long", "*1\r\n$" + strings.Repeat("1", 70_000)},
	{"wrong end of bulk", "*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n"},
	{"bulk longer than said", "*1\r\n$4\r\nPINGPONG\r\n"},
	{"bulk shorter than said", "*1\r\n$8\r\nPING\r\n*1\r\n$4\r\nPING\r\n"},
	{"empty command name", "*1\r\n$0\r\n\r\n"},
	{"empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"},
	{"line feeds only", "*1\n$4\nPING\n"},
	{"inline", "PING\r\n"},
	{"inline line feed only", "PING\nPING\n"},
	{"inline arguments", "  SET   inl  value \r\nGET inl\r\n"},
	{"inline quotes", "ECHO \"a b\\x41\\n\\\"\"\r\nECHO 'it\\'s'\r\n"},
	{"inline empty lines", "\r\n\r\n\n   \r\nPING\r\n"},
	{"inline unbalanced double quotes", "ECHO \"a b\r\nPING\r\n"},
	{"inline unbalanced single quotes", "ECHO 'a b\r\nPING\r\n"},
	{"inline closing quote and more", "ECHO \"a\"b\r\n"},
	{"inline unknown", "NOSUCH a b\r\n"},
	{"inline NUL", "PI\x00NG\r\nPING\r\n"},
	{"inline tabs", "ECHO\ta\r\n"},
	{"inline too long", strings.Repeat("x", 70_000)},
	{"inline long with end", "ECHO " + strings.Repeat("x", 60_000) + "\r\n"},
	{"HTTP GET", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	{"HTTP POST", "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a b\r\n"},
	{"HTTP Host line first", "Host: localhost\r\nPING\r\n"},
	{"binary", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n"},
	{"good then bad", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*1\r\n!4\r\nPING\r\n*1\r\n$4\r\nPING\r\n"},
	{"bad inside MULTI", "MULTI\r\nSET a 1\r\n*1\r\n$-9\r\n"},
	{"half a count", "*1"},
	{"half a bulk", "*2\r\n$3\r\nGET\r\n$10\r\nabc"},
	{"nothing", ""},
	{"10,000 arguments", args10k("DEL", 10_000)},
	{"100,000 arguments", args10k("EXISTS", 100_000)},
	{"10,000 arguments to GET", args10k("GET", 10_000)},
	{"10,000 pairs", args10k("MSET", 20_000)},
	{"deep pipeline", strings.Repeat("*1\r\n$4\r\nPING\r\n", 5_000)},
}

func args10k(name string, n int) string {
	args := []string{name}
	for i := range n {
		args = append(args, "key:"+strconv.Itoa(i))
	}
	return string(peer.AppendCommand(nil, args...))
}

// quiet is how long a server may say nothing, when it has said what it should, before its answer counts as complete.
const quiet = 150 * time.Millisecond

// answer is what a server says to bytes.
type answer struct {
	c      *peer.Conn
	said   string
	closed bool // the server hung up
}

// ask sends bytes, in chunks, and does not wait for what a server says to them.
func ask(t *testing.T, s *peer.Server, send string, chunk int) *answer {
	t.Helper()
	c := s.Dial(t)
	go func() {
		for len(send) > 0 {
			n := min(chunk, len(send))
			if c.SendRaw([]byte(send[:n])) != nil {
				return
			}
			send = send[n:]
		}
	}()
	return &answer{c: c}
}

// more reads on, and reports whether something came until the server was quiet.
func (a *answer) more() bool {
	if a.closed {
		return false
	}
	buf := make([]byte, 1<<16)
	_ = a.c.SetReadDeadline(time.Now().Add(quiet))
	n, err := a.c.Read(buf)
	a.said += string(buf[:n])
	a.closed = err != nil && !os.IsTimeout(err) // io.EOF, or a reset: the server closed with our bytes unread
	return n > 0 || a.closed
}

// becomes says whether an answer may yet be another one.
func (a *answer) becomes(b *answer) bool {
	return a.said == b.said && (a.closed == b.closed || !a.closed) || !a.closed && strings.HasPrefix(b.said, a.said)
}

// whole is all that a server says to bytes, and an end behind them. It reads the end last, so it has said all before.
func whole(t *testing.T, s *peer.Server, send string) string {
	t.Helper()
	c := s.Dial(t)
	defer c.Close()
	_ = c.SendRaw([]byte(send)) // it may hang up before it has read all
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(peer.ReplyTimeout))
	said, err := io.ReadAll(c.Conn)
	if os.IsTimeout(err) {
		t.Fatalf("%s does not end what it says to %.100q: %.300q", s.Name, send, said)
	}
	return string(said)
}

// differ says how the answers of two servers differ, "" if they do not. That a server is slow is no difference: it waits until
// both have said the same, which is all that the first one has to say, or cannot any more.
func differ(t *testing.T, oracle, tested *peer.Server, send string, chunk int) string {
	t.Helper()
	all := &answer{said: whole(t, oracle, send), closed: true}
	want, got := ask(t, oracle, send, chunk), ask(t, tested, send, chunk)
	defer want.c.Close()
	defer got.c.Close()
	for end := time.Now().Add(peer.ReplyTimeout); ; {
		came := want.more()
		if got.more() || came {
			continue
		}
		if want.said == all.said && got.said == want.said && got.closed == want.closed {
			return ""
		}
		diff := fmt.Sprintf("want %.300q, closed %v\n got %.300q, closed %v", want.said, want.closed, got.said, got.closed)
		if !want.becomes(all) || !want.becomes(got) && !got.becomes(want) {
			return diff
		}
		if time.Now().After(end) {
			t.Fatalf("%.100q: no more comes: %s", send, diff)
		}
	}
}

// resetTries is how often a frame is sent again where the answers differ.
const resetTries = 40

func TestBadFrames(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	watch := bystander(t, tested)
	for _, f := range frames {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, chunk := range []int{1 << 20, 7} {
				if len(f.send)/chunk > 2000 {
					continue
				}
				// A server that hangs up with input unread resets the connection, which may take its answer with it.
				diff := differ(t, oracle, tested, f.send, chunk)
				for n := 1; diff != "" && n < resetTries; n++ {
					diff = differ(t, oracle, tested, f.send, chunk)
				}
				if diff != "" {
					t.Errorf("in chunks of %d: %s", chunk, diff)
				}
			}
		})
	}
	t.Cleanup(watch)
}

// TestBadFramesNeedingAuth: before AUTH, little is read and nothing is run.
func TestBadFramesNeedingAuth(t *testing.T) {
	oracle, tested := redis(t, "--requirepass", "secret"), peer.LimitKV(t, "--requirepass", "secret")
	for _, send := range []string{
		"PING\r\n",
		"*1\r\n$4\r\nPING\r\n",
		"*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n",
		"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*1\r\n$4\r\nPING\r\n",
		"*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\nPING\r\n",
		"HELLO 3 AUTH default wrong\r\n",
		"HELLO 3\r\n",
		"RESET\r\nPING\r\n",
		"QUIT\r\n",
		"NOSUCH\r\n",
		"GET\r\n",
		"MULTI\r\n",
		"*11\r\n",
		"*2\r\n$16385\r\n",
		"*2\r\n$16384\r\n",
		"AUTH\r\n",
		"AUTH a b c\r\n",
	} {
		if diff := differ(t, oracle, tested, send, 1<<20); diff != "" {
			t.Errorf("%q: %s", send, diff)
		}
	}
}

// servedWithin is how long the bystander's commands may take while somebody else misbehaves.
const servedWithin = 5 * time.Second

// bystander starts a client that writes and reads without pause; the function it returns ends it and fails the test if
// it was not served.
func bystander(t *testing.T, s *peer.Server) func() {
	t.Helper()
	c := s.Dial(t)
	var stop atomic.Bool
	result := make(chan error, 1)
	go func() {
		n, slowest := 0, time.Duration(0)
		for ; !stop.Load(); n++ {
			began := time.Now()
			value := strconv.Itoa(n)
			if v, err := c.Do("SET", "bystander", value); err != nil || v.Text != "OK" {
				result <- fmt.Errorf("bystander: SET: %v %v", v, err)
				return
			}
			if v, err := c.Do("GET", "bystander"); err != nil || v.Text != value {
				result <- fmt.Errorf("bystander: GET: %v %v, want %s", v, err, value)
				return
			}
			slowest = max(slowest, time.Since(began))
			time.Sleep(time.Millisecond)
		}
		switch {
		case n == 0:
			result <- fmt.Errorf("bystander: nothing was asked")
		case slowest > servedWithin:
			result <- fmt.Errorf("bystander: served after %v", slowest)
		default:
			result <- nil
		}
	}()
	return func() {
		stop.Store(true)
		if err := <-result; err != nil {
			t.Errorf("%v\n%s", err, s.Output())
		}
	}
}

// residentMax bounds the server's memory while clients misbehave.
const residentMax = 1 << 30

// resident is the server's memory in bytes, 0 where the system does not tell.
func resident(s *peer.Server) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Pid()))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// TestHalfSentCommands: a thousand connections that stop in the middle cost little and hinder nobody.
func TestHalfSentCommands(t *testing.T) {
	s := peer.LimitKV(t)
	watch := bystander(t, s)
	for i := range 1000 {
		c := s.Dial(t)
		half := []string{"*2\r\n$3\r\nGET\r\n$100000000\r\nabc", "*1000000\r\n$1\r\nx\r\n", "PIN", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\n"}[i%4]
		if err := c.SendRaw([]byte(half)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	watch()
	if r := resident(s); r > residentMax {
		t.Errorf("the server grew to %d MB", r>>20)
	}
}

// TestClientThatNeverReads: its replies pile up to a limit, then it is dropped or no longer read; others are served.
func TestClientThatNeverReads(t *testing.T) {
	onlyThorough(t)
	s := peer.LimitKV(t)
	setter := s.Dial(t)
	if v, err := setter.Do("SET", "big", strings.Repeat("x", 1<<20)); err != nil || v.IsError() {
		t.Fatal(v, err)
	}
	watch := bystander(t, s)
	deaf := s.Dial(t)
	batch := []byte(strings.Repeat("GET big\r\n", 100))
	for range 100 { // 10,000 replies of 1 MB
		_ = deaf.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := deaf.Write(batch); err != nil {
			break
		}
	}
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		if r := resident(s); r > residentMax {
			t.Fatalf("the server grew to %d MB", r>>20)
		}
	}
	watch()
	began := time.Now()
	s.Stop()
	if took := time.Since(began); took > stopsWithin {
		t.Errorf("stopping took %v", took)
	}
}

// stopsWithin is how long a server may take to end although a client does not take its replies.
const stopsWithin = 10 * time.Second

// bombs are scripts that never end or grow without end. Each must be stopped by SCRIPT KILL or by a limit of its own.
var bombs = []struct{ name, script string }{
	{"loop", "while true do end"},
	{"for without end", "for i = 1, 1e15 do end"},
	{"recursion", "local function f(n) return 1 + f(n + 1) end return f(1)"},
	{"tail recursion", "local function f(n) return f(n + 1) end return f(1)"},
	{"long string", "return #string.rep('x', 1e10)"},
	{"growing string", "local s = 'x' while true do s = s .. s end"},
	{"growing table", "local t = {} while true do t[#t + 1] = 'some text ' .. #t end"},
	{"growing by insert", "local t = {} while true do table.insert(t, {}) end"},
	{"pattern", "return string.find(string.rep('a', 100000), string.rep('a*', 50) .. 'b')"},
	{"pcall in a loop", "while true do pcall(error, 'x') end"},
	{"loop behind pcall", "pcall(function() while true do end end) return 'survived'"},
	{"format", "return #string.format('%99999999d', 1)"},
	{"concat", "local t = {} for i = 1, 100 do t[i] = string.rep('x', 1e8) end return #table.concat(t)"},
	{"coroutines", "while true do coroutine.wrap(function() coroutine.yield() end)() end"},
	{"calls", "while true do redis.call('GET', 'x') end"},
	{"sort", "local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t, function(a, b) return a > b end) end"},
	{"gsub", "return #string.gsub(string.rep('x', 1e6), '', string.rep('y', 1e4))"},
	{"cmsgpack", "local t = {} for i = 1, 1e4 do t = {t} end return cmsgpack.pack(t)"},
}

// bombTimeout is when SCRIPT KILL comes, and how long a bomb may live after it.
const (
	bombTimeout = 300 * time.Millisecond
	bombDeath   = 10 * time.Second
)

// TestScriptBombs: while a bomb runs, others are served or told BUSY, and SCRIPT KILL or a limit ends it.
func TestScriptBombs(t *testing.T) {
	onlyThorough(t)
	for _, bomb := range bombs {
		t.Run(bomb.name, func(t *testing.T) {
			s := peer.LimitKV(t, "--lua-time-limit", "100")
			c, other := s.Dial(t), s.Dial(t)
			if err := c.Send("EVAL", bomb.script, "0"); err != nil {
				t.Fatal(err)
			}
			v, err := c.ReceiveWithin(bombTimeout)
			if err != nil && os.IsTimeout(err) {
				served := time.Now()
				if v, err := other.Do("PING"); err != nil || v.Text != "PONG" && !strings.HasPrefix(v.Text, "BUSY ") {
					t.Errorf("PING beside it: %v %v", v, err)
				}
				if took := time.Since(served); took > servedWithin {
					t.Errorf("PING beside it took %v", took)
				}
				for end := time.Now().Add(bombDeath); ; {
					if v, err := other.Do("SCRIPT", "KILL"); err != nil {
						t.Fatalf("SCRIPT KILL: %v %v\n%s", v, err, s.Output())
					}
					if v, err = c.ReceiveWithin(bombTimeout); err == nil || !os.IsTimeout(err) || time.Now().After(end) {
						break
					}
				}
			}
			if err != nil {
				t.Fatalf("no reply: %v\n%s", err, s.Output())
			}
			t.Logf("%.150v", v)
			if r := resident(s); r > 3*residentMax {
				t.Errorf("the server grew to %d MB", r>>20)
			}
			// Whoever waited is served now, by the same server.
			if v, err := other.Do("SET", "after", "1"); err != nil || v.Text != "OK" {
				t.Errorf("afterwards: %v %v\n%s", v, err, s.Output())
			}
			if v, err := c.Do("EVAL", "return redis.call('GET', KEYS[1])", "1", "after"); err != nil || v.Text != "1" {
				t.Errorf("a script afterwards: %v %v", v, err)
			}
		})
	}
}

// servedBeside are replies of Redis while a script runs that limitkv does not give: it has no one script to wait for,
// only keys that a script holds, so what does not touch them is served.
var servedBeside = map[string]string{
	"[EVAL return 1 0]": ":1",
	"[SET k w]":         "+QUEUED", // inside MULTI; EXEC tells
}

// TestBusy: what is said while a script runs, as Redis says it.
func TestBusy(t *testing.T) {
	oracle, tested := redis(t, "--lua-time-limit", "50"), peer.LimitKV(t, "--lua-time-limit", "50")
	var said [2][]string
	for i, s := range []*peer.Server{oracle, tested} {
		say := func(c *peer.Conn, args ...string) {
			v, err := c.Do(args...)
			said[i] = append(said[i], fmt.Sprintf("%v: %v %v", args, v, err))
		}
		c, other := s.Dial(t), s.Dial(t)
		say(other, "SCRIPT", "KILL")
		say(other, "SET", "k", "v")
		if err := c.Send("EVAL", "local n = 0 while true do redis.call('GET', 'k') n = n + 1 end", "0"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bombTimeout)
		say(other, "SET", "k", "w")
		say(other, "EVAL", "return 1", "0")
		say(other, "MULTI")
		say(other, "SET", "k", "w")
		say(other, "EXEC")
		say(other, "SCRIPT", "KILL")
		v, err := c.Receive()
		said[i] = append(said[i], fmt.Sprint(v, err))
		say(other, "GET", "k")
		say(other, "SCRIPT", "KILL")
		// After a write a script cannot be killed; the server is stopped without saving, as Redis says.
		if err := c.Send("EVAL", "redis.call('SET', 'k', 'x') while true do end", "0"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bombTimeout)
		say(other, "SCRIPT", "KILL")
		say(other, "GET", "k")
		if err := other.Send("SHUTDOWN", "NOSAVE"); err != nil {
			t.Fatal(err)
		}
		_, err = other.Receive()
		said[i] = append(said[i], fmt.Sprint("SHUTDOWN: ", err == io.EOF))
	}
	for i := range said[0] {
		command, _, _ := strings.Cut(said[0][i], ": ")
		if said[0][i] != said[1][i] && said[1][i] != command+": "+servedBeside[command]+" <nil>" {
			t.Errorf("want %s\n got %s", said[0][i], said[1][i])
		}
	}
}
