// What an operator sees of locks: every command of the family in COMMAND, ACL, the slow log, the counts of commands, and
// keyspace events. The rows are compared with the server's list, so a new command has to be added here.
package lock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// seen is a command, run in this order on the lock that the ones before it left.
type seen struct {
	name, line string
	granted    bool     // the reply begins with "[1 "
	reply      string   // the reply if it is not granted
	events     []string // of the key
	reads      bool     // the command changes nothing
	args       []string // its arguments in COMMAND DOCS
}

var visible = []seen{
	{"lk.acquire", "LK.ACQUIRE k a 60000", true, "", []string{"lk.acquire"}, false, []string{"name key", "name owner", "name ms", "token SHARED", "token OF", "token TAKE", "token BLOCK", "token DELAY"}},
	{"lk.touch", "LK.TOUCH a 90000 k", false, "1", []string{"lk.touch"}, false, []string{"name owner", "name ms", "name key"}},
	{"lk.guard", fmt.Sprint("LK.GUARD k ", fence(0)), false, "OK", nil, true, []string{"name key", "name fence"}},
	{"lk.info", "LK.INFO k", false, fmt.Sprintf("[mode alone permits 0 taken 0 closed 0 held 1 holders [[a %d 90000 1]] waiters 0 line []]", fence(0)), nil, true, []string{"name key"}},
	{"lk.release", "LK.RELEASE k a", false, "1", []string{"lk.release", "del"}, false, []string{"name key", "name owner", "name fence"}},
}

func TestVisible(t *testing.T) {
	s, c := start(t)
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0, "notify-keyspace-events", "EA")
	events := s.Client()
	events.Want("[psubscribe __keyevent@0__:* 1]", "PSUBSCRIBE", "__keyevent@0__:*")
	c.Want("OK", "ACL", "SETUSER", "locks", "on", "nopass", "~k", "+@lock")
	c.Want("OK", "ACL", "SETUSER", "reads", "on", "nopass", "%R~k", "+@lock")
	c.Want("OK", "ACL", "SETUSER", "others", "on", "nopass", "~*", "+@all", "-@lock")
	c.Want("OK", "ACL", "SETUSER", "elsewhere", "on", "nopass", "~j", "+@all")

	var all []string
	for name := range strings.FieldsSeq(strings.Trim(c.Do("COMMAND", "LIST"), "[]")) {
		if strings.HasPrefix(name, "lk.") {
			all = append(all, name)
		}
	}
	tested := []string{"lk.apply", "lk.fence"} // of journals; TestErrors checks that clients cannot call them
	for _, x := range visible {
		tested = append(tested, x.name)
	}
	slices.Sort(all)
	slices.Sort(tested)
	if !slices.Equal(all, tested) {
		t.Fatalf("the server has %v, the table %v", all, tested)
	}
	if inCategory := strings.Fields(strings.Trim(c.Do("ACL", "CAT", "lock"), "[]")); len(inCategory) != len(all) {
		t.Errorf("the category has %v", inCategory)
	}
	for _, x := range visible {
		t.Run(x.name, func(t *testing.T) {
			docs := c.Do("COMMAND", "DOCS", x.name)
			if !contains(docs, "summary ", "since 0.1.0", "group lock", "complexity ") {
				t.Errorf("COMMAND DOCS: %s", docs)
			}
			for _, arg := range x.args {
				if !strings.Contains(docs, arg) {
					t.Errorf("COMMAND DOCS has no %s: %s", arg, docs)
				}
			}
			info := c.Do("COMMAND", "INFO", x.name)
			if !contains(info, "@lock") || strings.Contains(info, "@read") != x.reads || strings.Contains(info, "@write") == x.reads {
				t.Errorf("COMMAND INFO: %s", info)
			}
			words := strings.Fields(x.line)
			args := make([]any, 0, len(words))
			for _, w := range words {
				args = append(args, w)
			}
			if got := c.Do(append([]any{"COMMAND", "GETKEYS"}, args...)...); got != "[k]" {
				t.Errorf("COMMAND GETKEYS: %s", got)
			}
			for user, allowed := range map[string]bool{"locks": true, "reads": x.reads, "others": false, "elsewhere": false} {
				got := c.Do(append([]any{"ACL", "DRYRUN", user}, args...)...)
				if (got == "OK") != allowed {
					t.Errorf("ACL DRYRUN %s: %s", user, got)
				}
				u := s.Client()
				u.Want("OK", "AUTH", user, "")
				if got := u.Do(args...); !allowed && !strings.HasPrefix(got, "-NOPERM") {
					t.Errorf("%s gets %s", user, got)
				} else if allowed && user == "locks" && !(x.granted && strings.HasPrefix(got, "[1 ") || got == x.reply) {
					t.Errorf("%s gets %s", user, got)
				}
				if log := c.Do("ACL", "LOG", 1); !allowed && !contains(log, "username "+user) {
					t.Errorf("ACL LOG of %s: %s", user, log)
				}
			}
			for _, want := range x.events {
				got, ok := events.Poll(5 * time.Second)
				if !ok || got != "[pmessage __keyevent@0__:* __keyevent@0__:"+want+" k]" {
					t.Errorf("event %s, want %s", got, want)
				}
			}
			events.Silent()
			if log := c.Do("SLOWLOG", "GET", 20); !strings.Contains(log, "["+strings.Join(words, " ")+"]") {
				t.Errorf("SLOWLOG: %s", log)
			}
			if stats := c.Do("INFO", "commandstats"); !strings.Contains(stats, "cmdstat_"+x.name+":calls=") {
				t.Errorf("INFO has no count of %s", x.name)
			}
			if help := c.Do("LATENCY", "HISTOGRAM", x.name); !strings.Contains(help, "calls ") {
				t.Errorf("LATENCY HISTOGRAM: %s", help)
			}
		})
	}
}

// A call that waited is in the slow log once it is served. INFO counts waiters, grants, refusals and lost leases.
func TestWaitIsVisible(t *testing.T) {
	s, c := start(t)
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
	info := func(want ...string) {
		t.Helper()
		if got := c.Do("INFO", "limitkv"); !contains(got, want...) {
			t.Errorf("INFO has not %v:\n%s", want, got)
		}
	}
	c.Want(granted(0, 100), "LK.ACQUIRE", "k", "a", 100)
	c.Want(refused(0, 100, 0), "LK.ACQUIRE", "k", "b", 100)
	w := s.Client()
	w.Send("LK.ACQUIRE", "k", "waits", 1000, "BLOCK", 0)
	s.Blocked(1)
	info("locks:1\r\n", "lock_waiters:1\r\n", "lock_calls_granted:1\r\n", "lock_calls_refused:1\r\n", "lock_leases_lost:0\r\n", fmt.Sprintf("lock_last_fence:%d\r\n", fence(0)))
	if got := c.Do("INFO", "clients"); !contains(got, "blocked_clients:1\r\n") {
		t.Error(got)
	}
	h := s.Client()
	h.Do("HELLO", 3)
	h.Want(granted(1, 50), "LK.ACQUIRE", "j", "h", 50)
	s.Advance(100)
	if got := w.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	info("locks:1\r\n", "lock_waiters:0\r\n", "lock_calls_granted:3\r\n", "lock_leases_lost:1\r\n")
	if log := c.Do("SLOWLOG", "GET", 10); !contains(log, "[LK.ACQUIRE k waits 1000 BLOCK 0]") {
		t.Errorf("SLOWLOG: %s", log)
	}
	c.Want("1", "LK.RELEASE", "k", "waits")
	info("locks:0\r\n")
}

// 100,000 locks that were held, waited for and lost leave nothing: no key, no line, no counted memory.
func TestNothingIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	const locks, batch = 100_000, 500
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	before := s.Keyspace.KeysBytes()
	for round, give := range []string{"released", "lost", "released by readers"} {
		for from := 0; from < locks; from += batch {
			var b []byte
			n := 0
			add := func(args ...any) { b, n = livetest.Append(b, args...), n+1 }
			for i := from; i < from+batch; i++ {
				key := fmt.Sprintf("lock:%011d", i)
				switch round {
				case 0:
					add("LK.ACQUIRE", key, "0123456789abcdef", 60_000)
				case 1:
					add("LK.ACQUIRE", key, "0123456789abcdef", 1+i%50)
				case 2:
					add("LK.ACQUIRE", key, "reader:1", 60_000, "SHARED")
					add("LK.ACQUIRE", key, "reader:2", 60_000, "SHARED")
				}
			}
			c.Pipeline(b, n)
		}
		c.Want(fmt.Sprint(locks), "DBSIZE")
		if each := (s.Keyspace.KeysBytes() - before) / locks; each < 60 {
			t.Fatalf("%s: a lock that is held is counted with %d bytes", give, each)
		}
		w.Send("LK.ACQUIRE", "lock:00000000000", "waits", 10, "BLOCK", 0)
		s.Blocked(1)
		switch round {
		case 1:
			s.Advance(60)
		default:
			for from := 0; from < locks; from += batch {
				var b []byte
				n := 0
				for i := from; i < from+batch; i++ {
					key := fmt.Sprintf("lock:%011d", i)
					owners := []string{"0123456789abcdef"}
					if round == 2 {
						owners = []string{"reader:1", "reader:2"}
					}
					for _, owner := range owners {
						b = livetest.Append(b, "LK.RELEASE", key, owner)
						n++
					}
				}
				c.Pipeline(b, n)
			}
		}
		if got := w.Read(); !strings.HasPrefix(got, "[1 ") {
			t.Errorf("%s: who waits gets %s", give, got)
		}
		s.Advance(20)
		c.Want("0", "DBSIZE")
		if left := s.Keyspace.KeysBytes() - before; left > 64<<10 {
			t.Errorf("%s: %d bytes are counted of no locks", give, left)
		}
		if got := c.Do("INFO", "limitkv"); !contains(got, "locks:0\r\n", "lock_waiters:0\r\n") {
			t.Errorf("%s: %s", give, got)
		}
	}
}
