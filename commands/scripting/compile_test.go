package scripting_test

// Compiling: which scripts are evicted, which are analysed, and that only the sender of a long source waits for it.

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/commands/scripting"
)

func sha(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// Of the scripts that came by EVAL, the 500 used last stay, as in Redis. All those of SCRIPT LOAD stay.
func TestEviction(t *testing.T) {
	s := livetest.Start(t)
	c, other := s.Client(), s.Client()
	const most = 500
	body := func(i int) string { return fmt.Sprintf("return %d", i) }
	exists := func(i int) bool { return strings.Contains(c.Do("SCRIPT", "EXISTS", sha(body(i))), "1") }
	for i := range 3 {
		c.Do("SCRIPT", "LOAD", body(-1-i))
	}
	for i := range most {
		c.Do("EVAL", body(i), "0")
		if i%50 == 0 {
			time.Sleep(time.Millisecond) // scripts that were used in the same microsecond have no order
		}
	}
	if !exists(0) || !exists(most-1) {
		t.Fatal("evicted before there are 500")
	}
	for i := range 10 { // used again: they stay
		if i%2 == 0 {
			other.Want(fmt.Sprint(i), "EVALSHA", sha(body(i)), "0")
		} else {
			other.Want(fmt.Sprint(i), "EVAL", body(i), "0")
		}
	}
	for i := most; i < 2*most-10; i++ {
		c.Do("EVAL", body(i), "0")
	}
	for i := range 2*most - 10 {
		if want := i < 10 || i >= most; exists(i) != want {
			t.Errorf("script %d is cached: %v", i, !want)
		}
	}
	for i := range 3 {
		if !exists(-1 - i) {
			t.Errorf("a loaded script was evicted")
		}
	}
	other.Want("11", "EVAL", body(11), "0") // an evicted script is compiled again
	if got := c.Do("EVALSHA", sha(body(12)), "0"); !strings.Contains(got, "NOSCRIPT") {
		t.Errorf("an evicted script: %s", got)
	}
	if got := c.Do("INFO", "stats"); !strings.Contains(got, fmt.Sprintf("evicted_scripts:%d", most-10+1)) {
		t.Errorf("INFO does not count the evicted scripts: %s", got)
	}
	c.Do("EVAL", body(-100), "0")
	c.Do("SCRIPT", "LOAD", body(-100)) // from now on it is not evicted
	for i := range most + 1 {
		c.Do("EVAL", body(10_000+i), "0")
	}
	if !exists(-100) {
		t.Error("a script that was loaded after EVAL was evicted")
	}
}

// statements is a source of some megabytes, which takes tens of milliseconds to compile.
var statements = strings.Repeat("a = 1 ", 300_000)

// While any command compiles a long source, the connections of all loops are served. The reply is the same as for a short
// source.
func TestLongSources(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	var others []*livetest.Client
	for range 4 {
		others = append(others, s.Client())
	}
	for _, test := range []struct {
		want string
		args []any
	}{
		{"unused", []any{"EVAL", strings.Repeat("if ARGV[1] then "+strings.Repeat("b() ", 50_000)+"end ", 4) + "return 'unused'", "0"}},
		{"more than 200 local variables", []any{"EVAL", statements + strings.Repeat("local a = 1 ", 300), "0"}},
		{"unexpected symbol", []any{"EVAL", statements + ")", "0"}},
		{"unexpected symbol", []any{"EVAL_RO", statements + ") -- read-only", "0"}},
		{sha(statements), []any{"SCRIPT", "LOAD", statements}},
		{"l", []any{"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() " + statements + " end)"}},
		{"already exists", []any{"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() " + statements + " end)"}},
		{"near '?'", []any{"FUNCTION", "LOAD", "REPLACE", "#!lua name=l\n" + statements + "?"}},
		{"QUEUED", nil},
		{"readonly table", []any{"EVAL", statements + "return 'in MULTI'", "0"}},
	} {
		if test.want == "QUEUED" {
			c.Want("OK", "MULTI")
			continue
		}
		release := scripting.HoldCompilers()
		c.Send(test.args...)
		for range 3 { // a loop that waited for its compiler would not answer
			for _, o := range others {
				o.Want("PONG", "PING")
			}
		}
		if got, ok := c.Poll(time.Microsecond); ok {
			t.Errorf("%.60q: %.200s before it was compiled", test.args, got)
		}
		release()
		got := c.Read()
		if got == "QUEUED" {
			got = c.Do("EXEC")
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%.60q: %.200s, want %s", test.args, got, test.want)
		}
	}
	if got := c.Do("EVALSHA", sha(statements), "0"); !strings.Contains(got, "readonly table") {
		t.Errorf("a long script: %s", got)
	}
}

// What happens to the cache and to the connection while a source is compiled.
func TestMeanwhile(t *testing.T) {
	s := livetest.Start(t)
	c, other := s.Client(), s.Client()
	busy := func() { // keeps all compiling goroutines busy
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			s.Client().Send("EVAL", statements+")", "0")
		}
	}
	long := func(result string) string { return "return '" + result + "'" + strings.Repeat(" ", 70_000) }

	busy()
	first := long("first")
	c.Send("EVAL", first, "0")
	c.Send("EVALSHA", sha(first), "0") // in the same pipeline
	if got := other.Do("EVALSHA", sha(first), "0"); got != "first" && !strings.Contains(got, "NOSCRIPT") {
		t.Errorf("EVALSHA meanwhile: %s", got)
	}
	other.Send("EVAL", first, "0") // by two clients at once
	other.Send("SCRIPT", "LOAD", first)
	for _, got := range []string{c.Read(), c.Read(), other.Read()} {
		if got != "first" {
			t.Errorf("%.80s", got)
		}
	}
	if got := other.Read(); got != sha(first) {
		t.Errorf("SCRIPT LOAD: %.80s", got)
	}

	busy()
	second := long("second")
	c.Send("EVAL", second, "0")
	other.Want("OK", "SCRIPT", "FLUSH")
	if got := c.Read(); got != "second" {
		t.Errorf("with SCRIPT FLUSH meanwhile: %s", got)
	}
	if got := other.Do("EVALSHA", sha(second), "0"); got != "second" && !strings.Contains(got, "NOSCRIPT") { // compiled before FLUSH came
		t.Errorf("EVALSHA after SCRIPT FLUSH: %s", got)
	}
	other.Want("[0]", "SCRIPT", "EXISTS", sha(first))

	busy()
	third := long("third")
	c.Send("SCRIPT", "LOAD", third)
	for i := range 1000 { // evicted before it is loaded
		other.Do("EVAL", fmt.Sprintf("return %d", i), "0")
	}
	if got := c.Read(); got != sha(third) {
		t.Errorf("with many EVALs meanwhile: %.80s", got)
	}
	for i := range 501 {
		other.Do("EVAL", fmt.Sprintf("return -%d", i), "0")
	}
	other.Want("third", "EVALSHA", sha(third), "0")
	if got := other.Do("INFO", "memory"); !strings.Contains(got, "number_of_cached_scripts:501") {
		t.Errorf("not 500 scripts and a loaded one: %s", got)
	}

	busy()
	killed := s.Client()
	id := killed.Do("CLIENT", "ID")
	killed.Send("EVAL", long("killed"), "0")
	gone := s.Client()
	gone.Send("EVAL", "redis.call('set','gone','1') "+long(""), "0")
	gone.Close()
	other.Want("1", "CLIENT", "KILL", "ID", id)
	if !killed.Ended() {
		t.Error("CLIENT KILL does not end a client whose source is compiled")
	}
	c.Want("1", "EVAL", "return 1"+strings.Repeat(" ", 70_000), "0") // the compilations before it are done
	other.Want("PONG", "PING")

	busy() // and the server ends
}

// A call with a wrong number of keys leaves no script behind, whatever its text is.
func TestWrongNumberOfKeysKeepsNothing(t *testing.T) {
	c := livetest.Start(t).Client()
	const body = "return 1 + 1"
	c.Want("-ERR Number of keys can't be greater than number of args", "EVAL", body, 5)
	c.Want("-ERR Number of keys can't be negative", "EVAL", body, -1)
	c.Want("-ERR value is not an integer or out of range", "EVAL_RO", body, "x")
	c.Want("-ERR Number of keys can't be greater than number of args", "EVAL", "this is no Lua", 5)
	c.Want("[0]", "SCRIPT", "EXISTS", sha(body))
	c.Want("2", "EVAL", body, 0)
	c.Want("[1]", "SCRIPT", "EXISTS", sha(body))
}
