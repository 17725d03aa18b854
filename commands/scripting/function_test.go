package scripting_test

// Tests of functions that need several clients: a function that does not end, and libraries that change while others call
// them.

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/commands/scripting"
	"github.com/limitkv/limitkv/server"
)

const loops = `#!lua name=loops
redis.register_function('forever', function() while true do end end)
redis.register_function('writes', function(keys) redis.call('SET', keys[1], 'v') while redis.call('GET', 'stop') == false do end end)`

// slow waits until a client gets BUSY.
func slow(t *testing.T, c *livetest.Client, want string) {
	t.Helper()
	for range 500 {
		if got := c.Do("GET", "k"); strings.HasPrefix(got, "(error) BUSY") || strings.Contains(got, "BUSY") {
			if !strings.Contains(got, want) {
				t.Fatalf("got %s, want %s", got, want)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nobody is told BUSY")
}

func TestFunctionKill(t *testing.T) {
	s := livetest.Start(t)
	runs, other := s.Client(), s.Client()
	other.Want("OK", "CONFIG", "SET", "busy-reply-threshold", "10")
	other.Do("FUNCTION", "LOAD", loops)
	runs.Send("FCALL", "forever", "1", "k", "argument")
	slow(t, other, "FUNCTION KILL")
	stats := other.Do("FUNCTION", "STATS")
	for _, part := range []string{"forever", "FCALL", "argument", "duration_ms", "libraries_count"} {
		if !strings.Contains(stats, part) {
			t.Errorf("FUNCTION STATS has no %q: %s", part, stats)
		}
	}
	if got := other.Do("SCRIPT", "KILL"); !strings.Contains(got, "FUNCTION KILL") {
		t.Errorf("SCRIPT KILL of a function: %s", got)
	}
	if got := other.Do("FUNCTION", "FLUSH"); !strings.Contains(got, "BUSY") {
		t.Errorf("FUNCTION FLUSH while one runs: %s", got)
	}
	other.Want("OK", "FUNCTION", "KILL")
	if got := runs.Read(); !strings.Contains(got, "Script killed by user") {
		t.Errorf("the function says %s", got)
	}
	if got := other.Do("FUNCTION", "KILL"); !strings.Contains(got, "NOTBUSY") {
		t.Errorf("nothing to kill: %s", got)
	}

	runs.Send("EVAL", "while true do redis.call('GET', KEYS[1]) end", "1", "k")
	slow(t, other, "SCRIPT KILL")
	if got := other.Do("FUNCTION", "KILL"); !strings.Contains(got, "SCRIPT KILL") {
		t.Errorf("FUNCTION KILL of a script: %s", got)
	}
	if got := other.Do("FUNCTION", "STATS"); !strings.Contains(got, "BUSY") {
		t.Errorf("FUNCTION STATS while a script runs: %s", got)
	}
	other.Want("OK", "SCRIPT", "KILL")
	runs.Read()
}

// TestBusyScope: a script that runs too long makes the server answer BUSY to all, as Redis does, or only to those who want
// its keys.
func TestBusyScope(t *testing.T) {
	s := livetest.Start(t)
	runs, other := s.Client(), s.Client()
	other.Want("OK", "CONFIG", "SET", "busy-reply-threshold", "10")
	script := []any{"EVAL", "while true do redis.call('GET', KEYS[1]) end", "1", "k"}
	const busy = "BUSY Redis is busy running a script"

	runs.Send(script...)
	slow(t, other, busy)
	for _, command := range []string{"PING", "GET", "EVAL", "MULTI", "PING", "EXEC"} {
		got := other.Do(append([]any{command}, map[string][]any{"GET": {"other"}, "EVAL": {"return 1", "0"}}[command]...)...)
		want := busy
		switch command {
		case "MULTI":
			want = "OK"
		case "EXEC":
			want = "EXECABORT Transaction discarded because of: BUSY"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	other.Want("OK", "SCRIPT", "KILL")
	runs.Read()
	other.Want("PONG", "PING")

	other.Want("OK", "CONFIG", "SET", "busy-reply-scope", "keys")
	runs.Send(script...)
	slow(t, other, busy)
	other.Want("PONG", "PING")
	served := 0
	for i := range 10 { // one of them may have the script's shard
		if other.Do("SET", fmt.Sprint("other", i), "v") == "OK" {
			served++
		}
	}
	if served < 5 {
		t.Errorf("%d of 10 other keys can be used", served)
	}
	other.Want("OK", "SCRIPT", "KILL")
	runs.Read()
}

// TestLibrariesChange: callers always see one whole library, on every worker.
func TestLibrariesChange(t *testing.T) {
	s := livetest.Start(t)
	admin := s.Client()
	load := func(v string) {
		admin.Want("lib", "FUNCTION", "LOAD", "REPLACE", `#!lua name=lib
local v = '`+v+`'
redis.register_function('a', function() return v .. v end)`)
	}
	load("0")
	var wg sync.WaitGroup
	const callers, calls = 4, 100
	for range callers {
		c := s.Client()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range calls {
				if got := c.Do("FCALL", "a", "0"); len(got) != 2 || got[0] != got[1] {
					t.Errorf("got %s", got)
					return
				}
			}
		}()
	}
	for i := range 20 {
		load(string(rune('a' + i)))
	}
	wg.Wait()
	admin.Want("tt", "FCALL", "a", "0")
	admin.Want("OK", "FUNCTION", "FLUSH")
	if got := admin.Do("FCALL", "a", "0"); !strings.Contains(got, "Function not found") {
		t.Errorf("after the flush: %s", got)
	}
}

func BenchmarkFCall(b *testing.B) {
	s := livetest.Start(b)
	c := s.Client()
	c.Do("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('INCR', keys[1]) end)")
	for b.Loop() {
		c.Do("FCALL", "f", "1", "k")
	}
}

// TestLibraryLocals: what functions store in local variables of their library is there for the next call, from any client,
// until the library is loaded again.
func TestLibraryLocals(t *testing.T) {
	const clients, calls = 8, 200
	s := livetest.Start(t)
	first := s.Client()
	load := func() {
		first.Want("counts", "FUNCTION", "LOAD", "REPLACE", `#!lua name=counts
			local n, seen = 0, {}
			redis.register_function('count', function(_, args)
				n = n + 1
				seen[args[1]] = (seen[args[1]] or 0) + 1
				return {n, seen[args[1]]}
			end)`)
	}
	load()
	var all sync.WaitGroup
	for i := range clients {
		c := s.Client()
		all.Add(1)
		go func() {
			defer all.Done()
			for j := range calls {
				if got := c.Do("FCALL", "count", "0", fmt.Sprint(i)); !strings.HasSuffix(got, fmt.Sprintf(" %d]", j+1)) {
					t.Errorf("client %d, call %d: %s", i, j+1, got)
					return
				}
			}
		}()
	}
	all.Wait()
	first.Want(fmt.Sprintf("[%d 1]", clients*calls+1), "FCALL", "count", "0", "first")
	first.Want("-ERR Function not found", "FCALL", "other", "0", "first")
	first.Want("OK", "SCRIPT", "FLUSH")
	first.Want(fmt.Sprintf("[%d 2]", clients*calls+2), "FCALL", "count", "0", "first")
	load()
	s.Client().Want("[1 1]", "FCALL", "count", "0", "first")
	first.Want("OK", "FUNCTION", "FLUSH")
	load()
	s.Client().Want("[1 1]", "FCALL", "count", "0", "first")
}

// TestBrokenInterpreter: a bug of the interpreter, here of os.clock, ends a script like an error. What the script has written
// stays, others continue, and another interpreter replaces the broken one.
func TestBrokenInterpreter(t *testing.T) {
	var broken atomic.Bool
	t.Cleanup(scripting.SetClock(func() float64 {
		if broken.Load() {
			panic("a bug")
		}
		return 1
	}))
	s := livetest.StartWith(t, func(s *server.Server) { s.Log = livetest.NoLog{} })
	c, other := s.Client(), s.Client()
	c.Want("l", "FUNCTION", "LOAD", `#!lua name=l
		local n = 0
		redis.register_function('f', function(keys) n = n + 1 redis.call('INCR', keys[1]) os.clock() return n end)`)
	script := "redis.call('INCR', KEYS[1]) local ok = pcall(os.clock) return tostring(ok)"
	c.Want("true", "EVAL", script, 1, "k")
	c.Want("1", "FCALL", "f", 1, "k")
	for range 3 {
		broken.Store(true)
		c.Want("-ERR internal error", "EVAL", script, 1, "k")
		c.Want("-ERR internal error", "FCALL", "f", 1, "k")
		other.Want("PONG", "PING")
		broken.Store(false)
		c.Want("true", "EVAL", script, 1, "k")
		c.Want("1", "FCALL", "f", 1, "k") // as after it was loaded
		c.Want("2", "FCALL", "f", 1, "k")
	}
	other.Want("17", "GET", "k")
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "INCR", "k")
	c.Want("QUEUED", "EVAL", script, 1, "k")
	c.Want("QUEUED", "FCALL", "f", 1, "k")
	c.Want("QUEUED", "INCR", "k")
	broken.Store(true)
	c.Want("[18 -ERR internal error -ERR internal error 21]", "EXEC")
	other.Want("21", "GET", "k")
}
