package commands_test

// Scripts that take long, and what else the server does meanwhile. They begin where all commands run. When their time is
// over, everything else moves elsewhere.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

const (
	forever = "while true do end"
	// spin takes ARGV[1] microseconds or more, and returns its last argument.
	spin = "local e = os.clock() + ARGV[1] / 1e6 while os.clock() < e do end return ARGV[#ARGV]"
	// spinWrites does the same after a write.
	spinWrites = "redis.call('incr', KEYS[1]) " + spin
)

// longs waits until n commands take long.
func longs(t *testing.T, s *livetest.Server, n int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); len(s.Long.All()) != n; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%d commands take long, not %d", len(s.Long.All()), n)
		}
	}
}

// killed sends SCRIPT KILL until there is a script to kill, and checks the reply.
func killed(t *testing.T, c *livetest.Client, want string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		got := c.Do("SCRIPT", "KILL")
		switch {
		case strings.HasPrefix(got, want):
			return
		case !strings.HasPrefix(got, "-NOTBUSY") && !strings.HasPrefix(got, "OK") || time.Now().After(end):
			t.Fatalf("SCRIPT KILL: %s, not %s", got, want)
		}
	}
}

// TestScriptsAroundTheirTime: scripts that end just before, at and after the time when they become long, in pipelines, among
// other commands, with arguments of all sizes.
func TestScriptsAroundTheirTime(t *testing.T) {
	s := livetest.Start(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for i := range 6 {
		c := s.Client()
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 8 {
				var send []byte
				var want []string
				for n := range 40 {
					arg := fmt.Sprintf("%d-%d", i, n) + strings.Repeat("x", rng.IntN(1<<rng.IntN(17)))
					micros := 300 + rng.IntN(500)
					switch rng.IntN(7) {
					case 0:
						send = livetest.Append(send, "EVAL", spin, 0, micros, arg)
						want = append(want, arg)
					case 1: // in one shard
						send = livetest.Append(send, "EVAL", spinWrites, 1, arg[:min(len(arg), 4)], micros, arg)
						want = append(want, arg)
					case 2:
						send = livetest.Append(send, "MULTI")
						send = livetest.Append(send, "EVAL", spin, 0, micros, arg)
						send = livetest.Append(send, "ECHO", arg)
						send = livetest.Append(send, "EVAL", spin, 0, micros, arg)
						send = livetest.Append(send, "EXEC")
						want = append(want, "OK", "QUEUED", "QUEUED", "QUEUED", "["+arg+" "+arg+" "+arg+"]")
					case 3:
						arg = arg[:min(len(arg), 200)]
						send = fmt.Appendf(send, "EVAL '%s' 0 %d %s\r\n", spin, micros, arg)
						want = append(want, arg)
					default:
						send = livetest.Append(send, "ECHO", arg)
						want = append(want, arg)
					}
				}
				go c.Write(send)
				for n, w := range want {
					if got := c.Read(); got != w {
						t.Errorf("reply %d: got %.60q, want %.60q", n, got, w)
						return
					}
				}
			}
		})
	}
	all.Wait()
	longs(t, s, 0)
}

// TestOthersAreServed: while one script takes long, the other clients of its loop are served promptly, and so are clients
// that publish to its connection.
func TestOthersAreServed(t *testing.T) {
	s := livetest.Start(t)
	slow := s.Client()
	slow.Want("OK", "CONFIG", "SET", "busy-reply-threshold", 600_000) // the machine may be busy, but the server must not say so
	slow.Send("EVAL", forever, 0)
	longs(t, s, 1)
	for range 6 { // of both loops
		c := s.Client()
		for range 200 {
			began := time.Now()
			c.Want("PONG", "PING")
			c.Want("OK", "SET", "k", "v")
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("two commands took %v", took)
			}
		}
	}
	killed(t, s.Client(), "OK")
	if got := slow.Read(); !strings.Contains(got, "killed by user") {
		t.Error(got)
	}
	slow.Want("PONG", "PING")
}

// TestLongPipeline: commands behind a long script in a pipeline wait for it, and the script's keys stay locked.
func TestLongPipeline(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Write(livetest.Append(livetest.Append(livetest.Append(nil, "PING"), "EVAL", spinWrites, 1, "k", 200_000, "done"), "GET", "k"))
	if got := a.Read(); got != "PONG" { // at once
		t.Error(got)
	}
	longs(t, s, 1)
	b.Want("PONG", "PING")
	b.Send("GET", "k")
	b.Silent()
	if got := a.Read() + a.Read() + b.Read(); got != "done11" {
		t.Error(got)
	}
}

// TestManyLongScripts: a thousand clients with a long script each, some of which disconnect meanwhile.
func TestManyLongScripts(t *testing.T) {
	s := livetest.Start(t)
	const n = 1000
	clients := make([]*livetest.Client, n)
	for i := range clients {
		clients[i] = s.Client()
		script := spinWrites
		if i%2 == 0 {
			script = "redis.call('incr', 'all') " + spin // its shard is not known
		}
		clients[i].Send("EVAL", script, 1, fmt.Sprint("k", i), 600, i)
		clients[i].Send("PING")
		if i%10 == 9 {
			clients[i].Close()
		}
	}
	for i, c := range clients {
		if i%10 != 9 {
			if got := c.Read() + c.Read(); got != fmt.Sprint(i)+"PONG" {
				t.Fatalf("client %d: %s", i, got)
			}
		}
	}
	longs(t, s, 0)
	s.Client().Want("500", "GET", "all")
}

// TestLongScriptsClient: actions on the client of a long script.
func TestLongScriptsClient(t *testing.T) {
	s := livetest.Start(t)
	other := s.Client()
	for name, end := range map[string]func(c *livetest.Client, id string){
		"it goes":   func(c *livetest.Client, _ string) { c.Close() },
		"is killed": func(_ *livetest.Client, id string) { other.Want("1", "CLIENT", "KILL", "ID", id) },
	} {
		c := s.Client()
		id := c.Do("CLIENT", "ID")
		c.Send("EVAL", "redis.call('set', 'gone', KEYS[1]) for i = 1, 1e8 do if i % 1e5 == 0 and redis.call('get', 'end') then return end end", 1, "k")
		longs(t, s, 1)
		end(c, id)
		// The script continues, because it has written.
		killed(t, other, "-UNKILLABLE")
		for _, run := range s.Long.All() {
			run.Stop()
		}
		longs(t, s, 0)
		other.Want("k", "GET", "gone")
		// Its session ends with the script, which still uses it.
		for deadline := time.Now().Add(5 * time.Second); strings.Contains(other.Do("CLIENT", "LIST"), "id="+id+" "); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: it is listed still", name)
			}
		}
	}

	// Messages to it come before its reply.
	c := s.Client()
	c.Do("HELLO", "3")
	c.Want("[subscribe ch 1]", "SUBSCRIBE", "ch")
	c.Send("EVAL", spin, 0, 300_000, "reply")
	longs(t, s, 1)
	other.Want("1", "PUBLISH", "ch", "message")
	if got := c.Read() + c.Read(); got != "[message ch message]reply" {
		t.Error(got)
	}
}

// TestLongExec: scripts of one EXEC are killed one by one.
func TestLongExec(t *testing.T) {
	s := livetest.Start(t)
	c, other := s.Client(), s.Client()
	other.Want("OK", "CONFIG", "SET", "busy-reply-threshold", "10")
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "SET", "k", "v")
	c.Want("QUEUED", "EVAL", forever, 0)
	c.Want("QUEUED", "EVAL", "redis.call('set', 'k', 'w') "+spin, 0, 300_000, "second")
	c.Want("QUEUED", "EVAL_RO", "return redis.call('blpop', 'list', 0)", 0)
	c.Want("QUEUED", "GET", "k")
	c.Send("EXEC")
	longs(t, s, 1)
	for !strings.Contains(other.Do("GET", "k"), "BUSY") {
	}
	killed(t, other, "OK")            // though the transaction has written
	time.Sleep(50 * time.Millisecond) // before it has written the second one could be killed, too
	killed(t, other, "-UNKILLABLE")
	got := c.Read()
	if !strings.HasPrefix(got, "[OK -ERR Error running script") && !strings.Contains(got, "killed by user") || !strings.HasSuffix(got, " w]") || !strings.Contains(got, "second") {
		t.Error(got)
	}
	c.Want("w", "GET", "k")
}

// panicking makes GET of the key panic panic.
func panicking(s *server.Server) {
	get, _ := s.Table.Resolve([][]byte{[]byte("get")})
	run := get.Run
	get.Run = func(c *command.Ctx) {
		if string(c.Args[1]) == "panic" {
			panic("of a test")
		}
		run(c)
	}
}

// TestLongScriptPanics: a bug in a command that a script calls is reported, whether the script takes long or not, and leaves
// nothing behind.
func TestLongScriptPanics(t *testing.T) {
	s := livetest.StartWith(t, func(s *server.Server) {
		s.Log = livetest.NoLog{}
		panicking(s)
	})
	c := s.Client()
	for range 3 {
		for _, micros := range []int{0, 2000} {
			if got := c.Do("EVAL", strings.Replace(spin, "return", "redis.call('get', 'panic') return", 1), 1, "k", micros, "x"); !strings.HasPrefix(got, "-ERR internal error") {
				t.Error(got)
			}
			c.Want("1", "EVAL", "return 1", 0)
			c.Want("OK", "SET", "k", "v")
		}
	}
	longs(t, s, 0)
}

// TestLongInNamespace: long scripts of a server for tests, where commands run by another path.
func TestLongInNamespace(t *testing.T) {
	s := livetest.Start(t)
	c, other := s.Client(), s.Client()
	c.Want("OK", "LKV.NAMESPACE", "USE", "ns")
	for range 20 {
		c.Send("EVAL", spinWrites, 1, "k", 2000, "done")
		c.Send("SET", "k2", "v")
		other.Want("nil", "GET", "k")
		if got := c.Read() + c.Read(); got != "doneOK" {
			t.Fatal(got)
		}
		c.Want("OK", "LKV.SNAPSHOT", "SAVE", "x")
		c.Want("OK", "LKV.SNAPSHOT", "RESTORE", "x")
	}
	c.Want("20", "GET", "k")
	c.Send("EVAL", forever, 0)
	longs(t, s, 1)
	killed(t, other, "OK")
	c.Read()
}

// TestCloseDuringScript: a server ends although scripts run forever.
func TestCloseDuringScript(t *testing.T) {
	var s *livetest.Server
	var began time.Time
	t.Run("", func(t *testing.T) {
		s = livetest.Start(t)
		s.Client().Send("EVAL", "redis.call('set', KEYS[1], 1) "+forever, 1, "k")
		s.Client().Send("EVAL", forever, 0)
		longs(t, s, 2)
		began = time.Now()
	})
	longs(t, s, 0)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}
