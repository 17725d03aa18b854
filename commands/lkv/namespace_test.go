// Namespaces, over the wire.

package lkv_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server/command"
)

func TestNamespace(t *testing.T) {
	s := livetest.Start(t)
	a, b, main := s.Client(), s.Client(), s.Client()
	for _, step := range []struct {
		c          *livetest.Client
		line, want string
	}{
		{main, "SET k main", "OK"},
		{main, "LKV.NAMESPACE LIST", "[]"},
		{a, "LKV.NAMESPACE GET", "nil"},
		{a, "SELECT 5", "OK"},
		{a, "LKV.NAMESPACE USE one", "OK"},
		{a, "LKV.NAMESPACE GET", "one"},
		{b, "LKV.NAMESPACE USE two", "OK"},
		{b, "LKV.NAMESPACE USE two", "OK"},
		{main, "LKV.NAMESPACE LIST", "[[name one port 0 clients 1] [name two port 0 clients 1]]"},
		// Databases.
		{a, "DBSIZE", "0"},
		{a, "SET k a", "OK"},
		{b, "SET k b", "OK"},
		{b, "SELECT 15", "OK"},
		{b, "SELECT 16", "-ERR DB index is out of range"},
		{b, "SET k b15", "OK"},
		{a, "SWAPDB 0 15", "OK"},
		{a, "KEYS *", "[]"},
		{a, "SELECT 15", "OK"},
		{a, "COPY k k DB 1", "1"},
		{a, "MOVE k 2", "1"},
		{a, "INFO keyspace", "# Keyspace\r\ndb1:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\ndb2:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\n"},
		{a, "FLUSHALL", "OK"},
		{b, "GET k", "b15"},
		{b, "SELECT 0", "OK"},
		{b, "GET k", "b"},
		{main, "GET k", "main"},
		{main, "INFO keyspace", "# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\n"},
		// Transactions and scripts.
		{b, "MULTI", "OK"},
		{b, "LKV.NAMESPACE LEAVE", "-ERR Command not allowed inside a transaction"},
		{b, "GET k", "QUEUED"},
		{b, "EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{b, "EVAL return\tredis.call('get','k') 0", "b"},
		{b, "EVAL local\ti=0\twhile\ti<10\tdo\ti=i+1\tend\treturn\tredis.call('get','k') 0", "b"},
		{b, "WATCH k", "OK"},
		{b, "LKV.NAMESPACE USE one", "-ERR a connection that watches, subscribes, tracks or monitors stays in its namespace"},
		{main, "SET k other", "OK"},
		{b, "MULTI", "OK"},
		{b, "GET k", "QUEUED"},
		{b, "EXEC", "[b]"},
		// Functions, faults, what was received, snapshots.
		{a, "FUNCTION LOAD #!lua\tname=lib\nredis.register_function('one',function()return\t1\tend)", "lib"},
		{a, "FCALL one 0", "1"},
		{b, "FCALL one 0", "-ERR Function not found"},
		{b, "FUNCTION LOAD #!lua\tname=lib\nredis.register_function('one',function()return\t2\tend)", "lib"},
		{b, "FCALL one 0", "2"},
		{a, "FCALL one 0", "1"},
		{a, "LKV.FAULT ADD get 1 ERROR MINE", "1"},
		{a, "LKV.LOG ON", "OK"},
		{b, "LKV.FAULT LIST", "[]"},
		{b, "GET k", "b"},
		{main, "GET k", "other"},
		{a, "GET k", "-MINE"},
		{a, "LKV.LOG COUNT", "1"},
		{b, "LKV.LOG COUNT", "0"},
		{b, "LKV.SNAPSHOT SAVE s", "OK"},
		{a, "LKV.SNAPSHOT LIST", "[]"},
		{a, "LKV.SNAPSHOT RESTORE s", "-ERR there is no snapshot of this name"},
		{a, "SELECT 0", "OK"},
		{a, "SET kept a", "OK"},
		{b, "DEL k", "1"},
		{b, "LKV.SNAPSHOT RESTORE s", "OK"},
		{b, "GET k", "b"},
		{a, "GET kept", "a"},
		// Time is the server's.
		{a, "SET t v PX 1000", "OK"},
		{main, "LKV.CLOCK ADVANCE 1001", "OK"},
		{a, "DBSIZE", "1"},
		// Leaving, coming back, and the end.
		{a, "LKV.NAMESPACE LEAVE", "OK"},
		{a, "GET k", "other"},
		{a, "LKV.NAMESPACE USE one", "OK"},
		{a, "GET kept", "a"},
		{a, "RESET", "RESET"},
		{a, "LKV.NAMESPACE GET", "one"},
		{a, "LKV.NAMESPACE DROP one", "-ERR this connection is in the namespace"},
		{main, "LKV.NAMESPACE DROP one", "OK"},
		{main, "LKV.NAMESPACE DROP one", "-ERR there is no namespace of this name"},
		{main, "LKV.NAMESPACE USE " + strings.Repeat("n", 129), "-ERR the name of a namespace has 1 to 128 bytes"},
		{main, "LKV.NAMESPACE USE", "-ERR wrong number of arguments for 'lkv.namespace|use' command"},
		{main, "LKV.NAMESPACE GET", "nil"},
		{main, "LKV.NAMESPACE USE one", "OK"},
		{main, "DBSIZE", "0"},
		{main, "FCALL one 0", "-ERR Function not found"},
		{main, "LKV.NAMESPACE LIST", "[[name two port 0 clients 1] [name one port 0 clients 1]]"},
	} {
		var words []any
		for _, w := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(step.line, "\n", "\x00"), "\t", "\x01")) {
			words = append(words, strings.ReplaceAll(strings.ReplaceAll(w, "\x00", "\n"), "\x01", " "))
		}
		if got := step.c.Do(words...); got != step.want {
			t.Errorf("%s: %q, want %q", step.line, got, step.want)
		}
	}
	if !a.Ended() {
		t.Error("the connection in a namespace that is gone goes on")
	}
}

// Channels, events, waiting, tracking and monitoring belong to a namespace.
func TestNamespaceTellsItsOwn(t *testing.T) {
	s := livetest.Start(t)
	one, other := s.Client(), s.Client()
	one.Want("OK", "LKV.NAMESPACE", "USE", "one")
	in := func() *livetest.Client {
		c := s.Client()
		c.Want("OK", "LKV.NAMESPACE", "USE", "one")
		return c
	}
	other.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")

	sub := in()
	sub.Want("[subscribe news 1]", "SUBSCRIBE", "news")
	sub.Want("[psubscribe __key* 2]", "PSUBSCRIBE", "__key*")
	sub.Want("[ssubscribe news 1]", "SSUBSCRIBE", "news")
	for _, c := range []*livetest.Client{other, one} {
		heard := "0"
		if c == one {
			heard = "1"
		}
		c.Want(heard, "PUBLISH", "news", "hello")
		c.Want(heard, "SPUBLISH", "news", "hello")
		c.Want("[news "+heard+"]", "PUBSUB", "NUMSUB", "news")
		c.Want(heard, "PUBSUB", "NUMPAT")
		c.Want("OK", "SET", "k", "v", "PX", 50)
	}
	s.Advance(51)
	for _, want := range []string{
		"[message news hello]", "[smessage news hello]",
		"[pmessage __key* __keyspace@0__:k set]", "[pmessage __key* __keyevent@0__:set k]",
		"[pmessage __key* __keyspace@0__:k expire]", "[pmessage __key* __keyevent@0__:expire k]",
		"[pmessage __key* __keyspace@0__:k expired]", "[pmessage __key* __keyevent@0__:expired k]",
	} {
		if got := sub.Read(); got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	sub.Silent()

	waits := in()
	waits.Send("BLPOP", "list", 60)
	s.Blocked(1)
	other.Want("1", "RPUSH", "list", "x")
	waits.Silent()
	one.Want("1", "RPUSH", "list", "y")
	if got := waits.Read(); got != "[list y]" {
		t.Errorf("BLPOP: %s", got)
	}
	waits.Send("BLPOP", "list", 60)
	s.Blocked(1)
	s.Advance(60_001)
	if got := waits.Read(); got != "nil" {
		t.Errorf("BLPOP: %s", got)
	}

	tracks := in()
	tracks.Do("HELLO", 3)
	tracks.Want("OK", "CLIENT", "TRACKING", "ON")
	tracks.Want("-ERR a connection that watches, subscribes, tracks or monitors stays in its namespace", "LKV.NAMESPACE", "LEAVE")
	tracks.Want("nil", "GET", "cached")
	other.Want("OK", "SET", "cached", 1)
	other.Want("OK", "FLUSHALL")
	tracks.Silent()
	one.Want("OK", "SET", "cached", 1)
	if got := tracks.Read(); got != "[invalidate [cached]]" {
		t.Errorf("told %s", got)
	}
	one.Want("OK", "FLUSHALL")
	if got := tracks.Read(); got != "[invalidate nil]" {
		t.Errorf("told %s", got)
	}

	monitor := in()
	monitor.Want("OK", "MONITOR")
	other.Want("PONG", "PING")
	monitor.Silent()
	one.Want("PONG", "PING")
	if got := monitor.Read(); !strings.HasSuffix(got, `"PING"`) {
		t.Errorf("monitored %s", got)
	}

	// A namespace sees, and kills, its own connections only.
	if got := strings.Count(one.Do("CLIENT", "LIST"), "\n"); got != 5 {
		t.Errorf("%d clients listed", got)
	}
	one.Want("4", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	other.Want("PONG", "PING")
}

func TestNamespacePort(t *testing.T) {
	s := livetest.Start(t)
	admin := s.Client()
	port := admin.Do("LKV.NAMESPACE", "PORT", "one")
	admin.Want(port, "LKV.NAMESPACE", "PORT", "one")
	c := s.ClientAt("127.0.0.1:" + port)
	c.Want("one", "LKV.NAMESPACE", "GET")
	c.Want("OK", "SET", "k", "v")
	admin.Want("nil", "GET", "k")
	admin.Want("[[name one port "+port+" clients 1]]", "LKV.NAMESPACE", "LIST")
	if got := string(s.DoIn("one", "GET", "k")); got != "$1\r\nv\r\n" {
		t.Errorf("DoIn replied %q", got)
	}
	if got := string(s.DoIn("two", "GET", "k")); got != "-ERR there is no namespace of this name\r\n" {
		t.Errorf("DoIn replied %q", got)
	}
	admin.Want("OK", "LKV.NAMESPACE", "DROP", "one")
	if !c.Ended() {
		t.Error("the connection goes on")
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		conn.Close()
		t.Error("the port is open")
	}
}

func TestNamespaceLimit(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for i := range command.NamespacesMax {
		c.Want("OK", "LKV.NAMESPACE", "USE", i)
	}
	c.Want("-ERR there are too many namespaces already", "LKV.NAMESPACE", "USE", "more")
	c.Want("255", "LKV.NAMESPACE", "GET")
	c.Want("OK", "LKV.NAMESPACE", "USE", 7)
	c.Want("OK", "LKV.NAMESPACE", "DROP", 8)
	c.Want("OK", "LKV.NAMESPACE", "USE", "more")
	s.Advance(1000)
}

// Commands in a namespace work as on a server of their own, whatever others do at the same time.
func TestNamespaceIsAsAServer(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const places, steps = 3, 2500
	shared := livetest.Start(t)
	var servers [places]*livetest.Server
	var in, alone [places]*livetest.Client
	for i := range places {
		servers[i] = livetest.Start(t)
		in[i], alone[i] = shared.Client(), servers[i].Client()
		if i > 0 {
			in[i].Want("OK", "LKV.NAMESPACE", "USE", i)
		}
	}
	failed := 0
	for range steps {
		i := rng.IntN(places)
		words := randomCommand(rng)
		switch rng.IntN(200) {
		case 0:
			words = []any{"FLUSHALL"}
		case 1:
			words = []any{"SWAPDB", rng.IntN(3), rng.IntN(3)}
		case 2:
			words = []any{"LKV.SNAPSHOT", "SAVE", rng.IntN(2)}
		case 3:
			words = []any{"LKV.SNAPSHOT", "RESTORE", rng.IntN(2)}
		case 4, 5, 6:
			ms := rng.Int64N(1000)
			shared.Advance(ms)
			for _, s := range servers {
				s.Advance(ms)
			}
		}
		got, want := in[i].Do(words...), alone[i].Do(words...)
		if got != want {
			t.Fatalf("%v: %s, want %s", words, got, want)
		}
		if strings.HasPrefix(got, "-") {
			failed++
		}
	}
	seen := 0
	for i := range places {
		got, want := state(in[i]), state(alone[i])
		seen += len(got)
		if got != want {
			t.Errorf("place %d is\n%s\nnot\n%s", i, got, want)
		}
		if i > 0 {
			if err := shared.Namespaces.Find(fmt.Sprint(i)).Keyspace.Check(); err != nil {
				t.Error(err)
			}
		}
	}
	if failed > steps/2 || seen == 0 {
		t.Errorf("%d of %d commands failed, %d bytes seen", failed, steps, seen)
	}
}

// Namespaces come and go while others work.
func TestNamespacesAtOnce(t *testing.T) {
	s := livetest.Start(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 15 {
				name := fmt.Sprint(w, i)
				s.DoIn("", "LKV.NAMESPACE", "PORT", name)
				ns := s.Namespaces.Find(name)
				conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", s.Namespaces.PortOf(ns)))
				if err != nil {
					t.Error(err)
					return
				}
				conn.Write(livetest.Append(livetest.Append(livetest.Append(nil, "SUBSCRIBE", "c"), "UNSUBSCRIBE"), "BLPOP", "l", 0))
				for range 10 {
					s.DoIn(name, "SET", "k", "v", "PX", "1000000")
					s.DoIn(name, "PUBLISH", "c", "m")
					s.DoIn(name, "LKV.SNAPSHOT", "SAVE", "s")
					s.DoIn(name, "FUNCTION", "LIST")
					s.DoIn("", "INCR", "n")
				}
				if got := string(s.DoIn(name, "DBSIZE")); got != ":1\r\n" {
					t.Errorf("a namespace has %q keys", got)
				}
				s.DoIn("", "CONFIG", "SET", "notify-keyspace-events", "KEA")
				s.DoIn("", "LKV.NAMESPACE", "DROP", name)
				conn.Close()
			}
		}()
	}
	wg.Wait()
	if got := string(s.Do("GET", "n")); got != "$3\r\n600\r\n" {
		t.Errorf("counted to %q", got)
	}
	if all := s.Namespaces.All(); len(all) != 0 {
		t.Errorf("left %d", len(all))
	}
}
