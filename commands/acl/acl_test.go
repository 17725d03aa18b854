package acl_test

// Users from files, and tests that need several clients.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// start makes a server that does not listen.
func start(t *testing.T, settings ...params.Setting) (*server.Server, error) {
	t.Helper()
	s, err := commands.New(server.Options{Settings: settings, Loops: 1, Test: true})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func want(t *testing.T, s *server.Server, part string, args ...string) {
	t.Helper()
	if got := string(s.Do(args...)); !strings.Contains(got, part) {
		t.Errorf("%v: got %q, want %q in it", args, got, part)
	}
}

func TestUserLines(t *testing.T) {
	user := func(line string) params.Setting { return params.Setting{Name: "user", Value: line, Where: "f:1"} }
	s, err := start(t, user("alice on nopass ~a:* (+get ~b) +set"), user("default on >p ~* &* +@all"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, s, "user alice on nopass sanitize-payload ~a:* resetchannels -@all +set (~b resetchannels -@all +get)", "ACL", "LIST")
	want(t, s, "user default on sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~* &* +@all", "ACL", "LIST")
	for line, problem := range map[string]string{
		"bob +nosuch":   "Unknown command",
		"bob (+get":     "unmatched parenthesis",
		"alice on":      "Duplicate user",
		"bob #nohash":   "64 characters",
		"bob ~* ~other": "after the * pattern",
	} {
		if _, err := start(t, user("alice on"), user(line)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("user %s: %v, want %q", line, err, problem)
		}
	}
}

// The default user may do everything at first. What is taken away is one command, or one category, and can be given back.
func TestDefaultUserLosesOne(t *testing.T) {
	s, err := start(t)
	if err != nil {
		t.Fatal(err)
	}
	can := func(command, want string) {
		t.Helper()
		if got := string(s.Do("ACL", "DRYRUN", "default", command, "k")); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", command, got, want)
		}
	}
	want(t, s, "OK", "ACL", "SETUSER", "default", "-get")
	want(t, s, "user default on nopass sanitize-payload ~* &* +@all -get", "ACL", "LIST")
	can("GET", "no permissions")
	can("TTL", "OK")
	want(t, s, "OK", "ACL", "SETUSER", "default", "+get", "-@list")
	can("GET", "OK")
	can("LLEN", "no permissions")
	can("TTL", "OK")
	want(t, s, "OK", "ACL", "SETUSER", "default", "+@all")
	can("LLEN", "OK")
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.acl")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user alice on nopass ~* +@all\n\n  user bob off \t\n")
	file := params.Setting{Name: "aclfile", Value: path}
	s, err := start(t, file)
	if err != nil {
		t.Fatal(err)
	}
	want(t, s, "*3\r\n$5\r\nalice\r\n$3\r\nbob\r\n$7\r\ndefault", "ACL", "USERS")
	want(t, s, "OK", "ACL", "SETUSER", "carol", "on", "+get", "~c")
	want(t, s, "OK", "ACL", "SAVE")
	saved, _ := os.ReadFile(path)
	if !strings.Contains(string(saved), "user carol on sanitize-payload ~c resetchannels -@all +get\n") {
		t.Errorf("saved: %s", saved)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
	want(t, s, ":1", "ACL", "DELUSER", "carol")
	want(t, s, "OK", "ACL", "LOAD")
	want(t, s, "carol", "ACL", "USERS")
	write("user alice +nosuch\nalice\nuser bob (+get\nuser dan on\nuser dan off\n")
	for _, part := range []string{":1: Error in applying operation '+nosuch': Unknown command", ":2 should start with user keyword",
		":3: Unmatched parenthesis", "Duplicate user 'dan' found on line 5", "no change to the previously active"} {
		want(t, s, part, "ACL", "LOAD")
	}
	want(t, s, "carol", "ACL", "USERS")
	os.Remove(path)
	want(t, s, "Error loading ACLs, opening file '"+path+"': No such file or directory", "ACL", "LOAD")
	if _, err := start(t, file); err == nil {
		t.Error("a server starts without its ACL file")
	}
}

// TestSessionsEnd: clients of a deleted user, or of one that may no longer listen, are disconnected; the rights of a waiter
// are checked again when it is served.
func TestSessionsEnd(t *testing.T) {
	s := livetest.Start(t)
	admin := s.Client()
	admin.Want("OK", "ACL", "SETUSER", "u", "on", "nopass", "~*", "&a", "&b", "+@all")
	login := func() *livetest.Client {
		c := s.Client()
		c.Want("OK", "AUTH", "u", "")
		return c
	}
	reader, waiter, gone := login(), login(), login()
	reader.Send("SUBSCRIBE", "b")
	reader.Read()
	waiter.Send("BLPOP", "list", "0")
	s.Blocked(1)
	admin.Want("OK", "ACL", "SETUSER", "u", "resetkeys", "~other", "&c")
	admin.Want("1", "LPUSH", "list", "x")
	if got := waiter.Read(); !strings.Contains(got, "NOPERM") {
		t.Errorf("a waiter without rights gets %s", got)
	}
	admin.Want("1", "LLEN", "list")
	admin.Want("1", "PUBLISH", "b", "still")
	reader.Read()
	admin.Want("OK", "ACL", "SETUSER", "u", "resetchannels", "&a")
	admin.Want("0", "PUBLISH", "b", "gone")
	admin.Want("1", "ACL", "DELUSER", "u")
	if got := admin.Do("CLIENT", "LIST"); strings.Contains(got, "user=u") {
		t.Errorf("sessions of a deleted user: %s", got)
	}
	_ = gone
}

// The keys whose rights are checked are the keys that the handler uses, even if keys and other values have the names of
// options.
func TestKeysNamedAsOptions(t *testing.T) {
	s, err := start(t, params.Setting{Name: "user", Value: "bob on >p resetkeys ~k* ~dead* ~limit* ~store* ~streams* +@all"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Do("XGROUP", "CREATE", "secret", "g", "$", "MKSTREAM"); !strings.Contains(string(s.Do("EXISTS", "secret")), "1") {
		t.Fatal("no stream was made")
	}
	for _, c := range []struct{ command, keys string }{
		{"DQ.SET deadq LEASE 1000 LIMIT dead dead secret", "deadq secret dead"},
		{"DQ.SET limitq DEAD limit limit secret", "limitq limit secret"},
		{"DQ.SET limitq GROUPS CONC 1 DEAD limit LIMIT secret", "limitq limit secret"},
		{"XREADGROUP COUNT 1 GROUP g streams STREAMS secret >", "secret"},
		{"XREADGROUP GROUP streams c STREAMS secret >", "secret"},
		{"XREAD STREAMS streams secret 0 0", "streams secret"},
		{"GEORADIUS k 0 0 1 m STORE k1 STORE secret", "k secret"},
		{"GEORADIUS k 0 0 1 m STORE STOREDIST STOREDIST secret", "k STOREDIST secret"},
		{"GEORADIUSBYMEMBER k m 1 m STORE STORE STORE secret", "k secret"},
		{"SORT k STORE get STORE secret", "k secret"},
		{"SORT k STORE limit STORE secret", "k secret"},
	} {
		args := strings.Fields(c.command)
		want(t, s, "has no permissions to access the '", append([]string{"ACL", "DRYRUN", "bob"}, args...)...)
		var keys []string
		for i, line := range strings.Split(string(s.Do(append([]string{"COMMAND", "GETKEYS"}, args...)...)), "\r\n") {
			if i > 0 && i%2 == 0 {
				keys = append(keys, line)
			}
		}
		if got := strings.Join(keys, " "); got != c.keys {
			t.Errorf("%s: the keys are %s, want %s", c.command, got, c.keys)
		}
	}
}

// A user that stores a value that names other keys, or uses such a value, must have the rights on these keys.
func TestKeysInsideValues(t *testing.T) {
	s := livetest.Start(t)
	admin, u := s.Client(), s.Client()
	admin.Want("OK", "ACL", "SETUSER", "u", "on", "nopass", "+@all", "~q", "~kq", "~k*", "resetkeys", "~q", "~kq", "~k", "~plain", "%R~{k}:value")
	u.Want("OK", "AUTH", "u", "")
	const denied = "-NOPERM No permissions to access a key"
	admin.Want("OK", "RL.SET", "qlim", "GCRA", "10", "1000")
	for _, setting := range [][2]string{{"DEAD", "qdead"}, {"LIMIT", "qlim"}} {
		name, value := setting[0], setting[1]
		admin.Want("OK", "DQ.SET", "q", name, value)
		dump := admin.Do("DUMP", "q")
		admin.Want("OK", "DQ.SET", "q", name, "")
		u.Want(denied, "DQ.SET", "q", name, value)
		u.Want("OK", "DQ.SET", "q", "TRIES", "1")
		admin.Want("OK", "DQ.SET", "q", name, value)
		denials := admin.Do("INFO", "stats")
		u.Want(denied, "COPY", "q", "kq")
		u.Want(denied, "COPY", "q", "kq", "DB", "1")
		u.Want(denied, "RESTORE", "kq", "0", dump)
		u.Want(denied, "RESTORE", "q", "0", dump, "REPLACE")
		u.Want(denied, "RESTORE", "q", "1", dump, "REPLACE", "ABSTTL")
		u.Want(denied, "EVAL", "return redis.pcall('COPY', KEYS[1], KEYS[2])", "2", "q", "kq")
		u.Want("OK", "MULTI")
		u.Want("QUEUED", "COPY", "q", "kq")
		u.Want("["+denied+"]", "EXEC")
		if admin.Do("INFO", "stats") == denials {
			t.Error("nothing was counted")
		}
		if got := admin.Do("ACL", "LOG", "1"); !strings.Contains(got, value) {
			t.Errorf("ACL LOG: %s, want %s", got, value)
		}
		admin.Want("0", "EXISTS", "kq")
		admin.Want("1", "EXISTS", "q")
		// Rights of several selectors do not add up.
		admin.Want("OK", "ACL", "SETUSER", "u", "(+dq.pop ~qdead ~qlim)")
		u.Want(denied, "COPY", "q", "kq")
		admin.Want("OK", "ACL", "SETUSER", "u", "(+@all ~q ~kq ~"+value+")")
		u.Want("1", "COPY", "q", "kq")
		u.Want("OK", "RESTORE", "kq", "0", dump, "REPLACE")
		admin.Want("OK", "ACL", "SETUSER", "u", "clearselectors")
		u.Want("OK", "RENAME", "kq", "kq")
		admin.Want("2", "DEL", "q", "kq")
	}

	admin.Want("3", "HSET", "k", "rate", "5", "interval", "1000", "type", "0")
	for _, command := range []string{"RL.ACQUIRE k", "RL.ACQUIRE k 1 PEEK", "RL.ACQUIRE k BLOCK 0", "RL.ACQUIRE k FORCE",
		"RL.MACQUIRE 2 plain 1 k 1 RULE 1 GCRA 5 1000", "RL.RELEASE k", "RL.INFO k"} {
		var args []any
		for _, arg := range strings.Fields(command) {
			args = append(args, arg)
		}
		u.Want(denied, args...)
	}
	admin.Want("2", "DBSIZE")
	admin.Want("OK", "ACL", "SETUSER", "u", "%R~{k}:permits")
	u.Want(denied, "RL.ACQUIRE", "k")
	if got := u.Do("RL.INFO", "k"); !strings.Contains(got, "available") {
		t.Errorf("who may read all three keys gets %s", got)
	}
	admin.Want("OK", "ACL", "SETUSER", "u", "~{k}:*")
	u.Want("[0 5 4 -1 1000]", "RL.ACQUIRE", "k")

	// The limiter that the user waits for becomes one of Redisson's.
	admin.Want("1", "DEL", "k")
	admin.Want("OK", "RL.SET", "k", "TOTAL", "1")
	admin.Want("[0 1 0 -1 -1]", "RL.ACQUIRE", "k")
	admin.Want("OK", "ACL", "SETUSER", "u", "resetkeys", "~k")
	u.Send("RL.ACQUIRE", "k", "BLOCK", "0")
	s.Blocked(1)
	admin.Want("OK", "MULTI")
	admin.Want("QUEUED", "DEL", "k")
	admin.Want("QUEUED", "HSET", "k", "rate", "5", "interval", "1000", "type", "0")
	admin.Want("[1 3]", "EXEC")
	if got := u.Read(); got != denied {
		t.Errorf("who waits gets %s", got)
	}
	// The rights end while the user waits for the limiter: the reply of the time-out shows nothing of it.
	admin.Want("OK", "ACL", "SETUSER", "u", "~{k}:*")
	admin.Want("[0 5 0 -1 1000]", "RL.ACQUIRE", "k", "4")
	u.Send("RL.ACQUIRE", "k", "BLOCK", "20")
	s.Blocked(1)
	admin.Want("OK", "ACL", "SETUSER", "u", "resetkeys", "~k")
	s.Advance(20)
	if got := u.Read(); got != "[1 0 0 -1 0]" {
		t.Errorf("who has waited gets %s", got)
	}
}

// In a cluster the keys that a queue names are in its slot.
func TestKeysInsideValuesOfSlots(t *testing.T) {
	s := livetest.StartWith(t, func(s *server.Server) { s.Cluster = true })
	c := s.Client()
	c.Want("OK", "DQ.SET", "{a}q", "DEAD", "{a}dead")
	dump := c.Do("DUMP", "{a}q")
	c.Want("-CROSSSLOT Keys in request don't hash to the same slot", "RESTORE", "{b}q", "0", dump)
	c.Want("OK", "RESTORE", "{a}r", "0", dump)
}
