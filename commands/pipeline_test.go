package commands_test

// The pipeline: what is found out about a command once stays with it, and is valid when it runs.

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/luavm"
)

const increments = "return redis.call('incr', 'counter')" // it changes a key that it does not name

// A script that a transaction loads, or flushes, exists for its later commands, or not; and it has its locks.
func TestScriptsOfATransaction(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	sha := luavm.SHA1Hex([]byte(increments))
	c.Want("OK", "MULTI")
	for _, args := range [][]any{
		{"EVALSHA", sha, 0}, {"SCRIPT", "LOAD", increments}, {"EVALSHA", sha, 0}, {"SCRIPT", "FLUSH"}, {"EVALSHA", sha, 0},
		{"EVAL", increments, 0}, {"EVALSHA", sha, 0}, {"EVALSHA", sha, 1}, {"EVALSHA", sha, "x"}, {"EVAL", "no Lua", 0},
	} {
		c.Want("QUEUED", args...)
	}
	const noScript = "-NOSCRIPT No matching script. Please use EVAL."
	got := c.Do("EXEC")
	want := "[" + strings.Join([]string{
		noScript, sha, "1", "OK", noScript, "2", "3", "-ERR Number of keys can't be greater than number of args",
		"-ERR value is not an integer or out of range", "-ERR Error compiling script (new function): ",
	}, " ")
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Known when it is queued, and missing when it runs.
	c.Want(sha, "SCRIPT", "LOAD", increments)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "EVALSHA", sha, 0)
	s.Client().Want("OK", "SCRIPT", "FLUSH")
	c.Want("["+noScript+"]", "EXEC")
	c.Want("3", "GET", "counter")
}

// Scripts that others load and flush meanwhile run whole, under their locks, or not at all.
func TestScriptsComeAndGo(t *testing.T) {
	s := livetest.Start(t)
	sha := luavm.SHA1Hex([]byte(increments))
	const times = 400
	var done, unknown atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		c := s.Client()
		all.Go(func() {
			for n := range times {
				got := "OK"
				switch i {
				case 0:
					c.Do("SCRIPT", "LOAD", increments)
				case 1:
					if n%2 == 0 {
						c.Do("SCRIPT", "FLUSH")
					}
				case 2:
					got = c.Do("EVALSHA", sha, 0)
				default:
					c.Do("MULTI")
					c.Do("EVALSHA", sha, 0)
					got = strings.Trim(c.Do("EXEC"), "[]")
				}
				switch {
				case strings.HasPrefix(got, "-NOSCRIPT"):
					unknown.Add(1)
				case strings.HasPrefix(got, "-"):
					t.Error(got)
				case i >= 2:
					done.Add(1)
				}
			}
		})
	}
	all.Wait()
	if done.Load() == 0 || unknown.Load() == 0 {
		t.Errorf("%d ran, %d did not", done.Load(), unknown.Load())
	}
	s.Client().Want(fmt.Sprint(done.Load()), "GET", "counter")
}
