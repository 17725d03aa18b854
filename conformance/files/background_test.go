// What is written in the background and at the end, and what a client is told of it, beside Redis.
package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// until waits until a server's INFO has a text.
func until(t *testing.T, c *peer.Conn, text string) {
	t.Helper()
	peer.Eventually(t, "INFO has "+text, func() bool { return strings.Contains(do(t, c, "INFO persistence"), text) })
}

// field is a number of INFO persistence.
func field(t *testing.T, c *peer.Conn, name string) int {
	t.Helper()
	_, text, _ := strings.Cut(do(t, c, "INFO persistence"), name+":")
	text, _, _ = strings.Cut(text, `\r`)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// kinds are keys of all types that Redis has, in their several forms.
func kinds() (lines []string) {
	lines = []string{
		"SET string value", "SET number 12345", "SET short 1 PX 100000000", "APPEND string x", "SETBIT bits 100 1",
		"SELECT 3", "SET other 1", "SELECT 0",
		"HSET hash a 1 b 2 c 3", "HPEXPIRE hash 100000000 FIELDS 1 b", "ZADD zset 1.5 a -inf b inf c 3 d 0.1 e", "EXPIRE zset 100000",
		"XADD stream 1-1 a b c d", "XADD stream 2-1 e f", "XADD stream 3-1 a b", "XDEL stream 2-1", "XGROUP CREATE stream g 0",
		"XREADGROUP GROUP g one COUNT 1 STREAMS stream >", "XGROUP CREATECONSUMER stream g two", "XGROUP CREATE stream late $",
		"XADD empty 5-1 a b", "XTRIM empty MAXLEN 0", "PFADD hll a b c", "SADD ints 1 2 3", "SADD words a b c", "RPUSH list a b 3",
		"FUNCTION LOAD #!lua name=lib\nredis.register_function('f',function()return(1)end)",
	}
	for i := range 300 {
		n := strconv.Itoa(i)
		lines = append(lines, "RPUSH long "+n, "SADD large m"+n, "HSET table f"+n+" "+n, "ZADD scores "+n+" m"+n, "SADD integers "+n)
	}
	return lines
}

func fillKinds(t *testing.T, c *peer.Conn) {
	t.Helper()
	for _, line := range kinds() {
		words := strings.Split(line, " ")
		if words[0] == "FUNCTION" {
			words = []string{"FUNCTION", "LOAD", strings.TrimPrefix(line, "FUNCTION LOAD ")}
		}
		v, err := c.Do(words...)
		if err != nil || v.IsError() {
			t.Fatalf("%s: %v %v", line, v, err)
		}
	}
}

// TestWords: with aof-use-rdb-preamble no the base of the append-only file is commands, which make the same keys of any
// server; limiters and queues come back, too.
func TestWords(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--dir", dir, "--appendonly", "yes", "--aof-use-rdb-preamble", "no", "--aof-timestamp-enabled", "yes"}
	s := peer.LimitKV(t, args...)
	c := s.Dial(t)
	fillKinds(t, c)
	do(t, c, "BGREWRITEAOF")
	until(t, c, "aof_rewrite_in_progress:0\\r\\n")
	digest := do(t, c, "DEBUG DIGEST")
	end(t, c)
	gone(t, s)
	base := filepath.Join(dir, "appendonlydir", "appendonly.aof.2.base.aof")
	text, err := os.ReadFile(base)
	if err != nil || !strings.HasPrefix(string(text), "#TS:") || !strings.Contains(string(text), "RPUSH") || strings.Contains(string(text), "REDIS0") {
		t.Fatalf("the base is %.60q: %v", text, err)
	}
	oracle := peer.Redis(t, required, args...)
	if got := do(t, oracle.Dial(t), "DEBUG DIGEST"); got != digest {
		t.Errorf("Redis has %s of it, not %s", got, digest)
	}
	end(t, oracle.Dial(t))
	gone(t, oracle)
	s = peer.LimitKV(t, args...)
	c = s.Dial(t)
	if got := do(t, c, "DEBUG DIGEST"); got != digest {
		t.Errorf("started again it has %s, not %s", got, digest)
	}
	if v := do(t, c, "FCALL f 0"); v != ":1" {
		t.Errorf("the function replies %s", v)
	}
	for _, line := range []string{"RL.ACQUIRE limiter 3 FIXED 10 100000", "DQ.ADD queue payload", "DQ.ADD queue DELAY 100000 later", "DQ.POP queue LEASE 100000"} {
		if v := do(t, c, line); strings.HasPrefix(v, "-") {
			t.Fatal(line, v)
		}
	}
	do(t, c, "BGREWRITEAOF")
	until(t, c, "aof_rewrite_in_progress:0\\r\\n")
	digest = do(t, c, "DEBUG DIGEST")
	end(t, c)
	gone(t, s)
	c = peer.LimitKV(t, args...).Dial(t)
	if got := do(t, c, "DEBUG DIGEST"); got != digest {
		t.Errorf("with a limiter and a queue it has %s, not %s", got, digest)
	}
}

// TestCounts: what INFO counts of snapshots, rewrites and changes is what Redis counts.
func TestCounts(t *testing.T) {
	names := []string{"rdb_changes_since_last_save", "rdb_saves", "aof_rewrites", "aof_rewrites_consecutive_failures"}
	var told [2][]string
	for i, begin := range []func(t *testing.T, args ...string) *peer.Server{
		func(t *testing.T, args ...string) *peer.Server { return peer.LimitKV(t, args...) },
		func(t *testing.T, args ...string) *peer.Server { return peer.Redis(t, required, args...) },
	} {
		dir := t.TempDir()
		c := begin(t, "--dir", dir, "--save", "3600 1000000").Dial(t)
		say := func(line string) {
			text := line
			for _, name := range names {
				text += fmt.Sprintf(" %s:%d", name, field(t, c, name))
			}
			_, status, _ := strings.Cut(do(t, c, "INFO persistence"), "aof_last_bgrewrite_status:")
			told[i] = append(told[i], text+" "+status[:2]) // whether one ended shows in its time, which is -1 before
			for _, name := range []string{"rdb_last_bgsave_time_sec", "aof_last_rewrite_time_sec"} {
				told[i] = append(told[i], fmt.Sprintf("%s %s %t", line, name, field(t, c, name) == -1))
			}
		}
		say("at the start")
		for _, line := range []string{
			"MSET a 1 b 2 c 3", "SAVE", "MSET a 1 b 2 c 3 d 4", "FLUSHDB", "MSET a 1 b 2 c 3 d 4", "FLUSHALL", "SET a 1", "CONFIG RESETSTAT",
		} {
			do(t, c, line)
			say(line)
		}
		for _, line := range []string{"BGSAVE", "BGREWRITEAOF"} {
			do(t, c, line)
			until(t, c, "rdb_bgsave_in_progress:0")
			until(t, c, "aof_rewrite_in_progress:0")
			say(line)
		}
		err := os.RemoveAll(filepath.Join(dir, "appendonlydir"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "appendonlydir"), nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		told[i] = append(told[i], do(t, c, "BGREWRITEAOF"))
		say("a rewrite that does not begin")
	}
	for i := range told[0] {
		if told[0][i] != told[1][i] {
			t.Errorf("limitkv: %s\nRedis:   %s", told[0][i], told[1][i])
		}
	}
}

// TestRewriteWithoutLog: BGREWRITEAOF while appendonly is no writes a base, as in Redis.
func TestRewriteWithoutLog(t *testing.T) {
	dir := t.TempDir()
	s := peer.LimitKV(t, "--dir", dir)
	c := s.Dial(t)
	fillKinds(t, c)
	if v := do(t, c, "BGREWRITEAOF"); v != "+Background append only file rewriting started" {
		t.Error(v)
	}
	until(t, c, "aof_rewrite_in_progress:0\\r\\n")
	digest := do(t, c, "DEBUG DIGEST")
	do(t, c, "SET after 1")
	end(t, c)
	gone(t, s)
	for _, s := range []*peer.Server{peer.Redis(t, required, "--dir", dir, "--appendonly", "yes"), nil} {
		if s == nil {
			s = peer.LimitKV(t, "--dir", dir, "--appendonly", "yes")
		}
		c := s.Dial(t)
		if got := do(t, c, "DEBUG DIGEST"); got != digest {
			t.Errorf("%s has %s of it, not %s", s.Name, got, digest)
		}
		end(t, c)
		gone(t, s)
	}
}

// TestProgress: INFO tells how many keys a snapshot has written, and how many bytes it copied of those that were about to
// change; the others cost nothing.
func TestProgress(t *testing.T) {
	s := peer.LimitKV(t, "--enable-debug-command", "yes", "--rdbcompression", "no")
	c := s.Dial(t)
	do(t, c, "DEBUG POPULATE 20000 key 300")
	for _, command := range []string{"BGSAVE", "BGREWRITEAOF"} {
		do(t, c, "CONFIG SET rdb-key-save-delay 100") // two seconds in all
		do(t, c, command)
		until(t, c, "current_save_keys_total:20000")
		before := field(t, c, "current_save_keys_processed")
		if got := field(t, c, "current_cow_size"); got != 0 {
			t.Errorf("%s: %d bytes are copied, and nothing was changed", command, got)
		}
		for i := range 20000 { // those that are written already cost nothing
			_ = c.Send("APPEND", fmt.Sprintf("key:%d", i), "x")
		}
		for range 20000 {
			if _, err := c.Receive(); err != nil {
				t.Fatal(err)
			}
		}
		early := field(t, c, "current_cow_size")
		if early < 300*1000 || early > 400*20000 {
			t.Errorf("%s: %d bytes are copied", command, early)
		}
		for deadline := time.Now().Add(60 * time.Second); field(t, c, "current_save_keys_processed") <= before; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no key is written", command)
			}
		}
		if got := field(t, c, "current_fork_perc"); got < 0 || got > 100 {
			t.Errorf("%s: %d %% are written", command, got)
		}
		do(t, c, "CONFIG SET rdb-key-save-delay 0")
		of := map[string]string{"BGSAVE": "rdb", "BGREWRITEAOF": "aof"}[command]
		until(t, c, map[string]string{"rdb": "rdb_bgsave_in_progress:0", "aof": "aof_rewrite_in_progress:0"}[of])
		if got := field(t, c, of+"_last_cow_size"); got != early {
			t.Errorf("%s: at last %d bytes are copied, and were %d", command, got, early)
		}
	}
}

// TestAtOnce: what is asked for while something else is written gets Redis's replies.
func TestAtOnce(t *testing.T) {
	script := []string{
		"BGREWRITEAOF NOW", "BGSAVE NOW", "BGSAVE SCHEDULE 1", "LASTSAVE 1", "SAVE 1",
		"BGSAVE", "BGSAVE", "BGSAVE SCHEDULE", "SAVE", "BGREWRITEAOF", "MULTI", "BGSAVE", "BGREWRITEAOF", "EXEC",
		"CONFIG SET rdb-key-save-delay 0", "SHUTDOWN ABORT", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT NOW", "SHUTDOWN X",
	}
	rewriting := []string{
		"BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE", "BGSAVE SCHEDULE", "MULTI", "BGREWRITEAOF", "BGSAVE", "EXEC",
		"CONFIG SET rdb-key-save-delay 0",
	}
	for _, lines := range [][]string{script, rewriting} {
		var replies [2][]string
		for i, s := range []*peer.Server{peer.Redis(t, required), peer.LimitKV(t)} {
			c := s.Dial(t)
			do(t, c, "DEBUG POPULATE 100")
			do(t, c, "CONFIG SET rdb-key-save-delay 1000000")
			for _, line := range lines {
				replies[i] = append(replies[i], do(t, c, line))
			}
			do(t, c, "SHUTDOWN ABORT")
			_ = c.Send("SHUTDOWN", "NOSAVE", "FORCE") // whoever writes is stopped
			gone(t, s)
		}
		for i, line := range lines {
			if replies[0][i] != replies[1][i] {
				t.Errorf("%s (%d)\n  want %s\n  got  %s", line, i, replies[0][i], replies[1][i])
			}
		}
	}
}

// TestShutdownRefused: a server whose last snapshot cannot be written goes on, unless it is told to end anyway.
func TestShutdownRefused(t *testing.T) {
	for _, of := range []func(args ...string) *peer.Server{
		func(args ...string) *peer.Server { return peer.Redis(t, required, args...) },
		func(args ...string) *peer.Server { return peer.LimitKV(t, args...) },
	} {
		dir := t.TempDir()
		s := of("--dir", dir, "--save", "3600 1")
		c := s.Dial(t)
		do(t, c, "SET a 1")
		if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "full"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOW"} {
			if v := do(t, c, line); v != "-ERR Errors trying to SHUTDOWN. Check logs." {
				t.Errorf("%s: %s: %s", s.Name, line, v)
			}
		}
		if v := do(t, c, "SAVE"); v != "-ERR" {
			t.Errorf("%s: SAVE: %s", s.Name, v)
		}
		_ = s.Signal(syscall.SIGTERM)
		time.Sleep(200 * time.Millisecond)
		if v := do(t, c, "SET b 2"); v != "+OK" {
			t.Errorf("%s: a write afterwards: %s", s.Name, v)
		}
		if err := os.RemoveAll(filepath.Join(dir, "dump.rdb")); err != nil {
			t.Fatal(err)
		}
		end(t, c)
		gone(t, s)
		s = of("--dir", dir, "--save", "3600 1")
		c = s.Dial(t)
		if v := do(t, c, "MGET a b"); v != `["1", "2"]` {
			t.Errorf("%s: it has %s", s.Name, v)
		}
		if err := os.RemoveAll(filepath.Join(dir, "dump.rdb")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "full"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := c.Send("SHUTDOWN", "FORCE"); err != nil {
			t.Fatal(err)
		}
		gone(t, s)
	}
}

// TestReload: what is written and read back is the same, and what follows is kept.
func TestReload(t *testing.T) {
	for _, log := range []string{"yes", "no"} {
		dir := t.TempDir()
		s := peer.LimitKV(t, "--dir", dir, "--appendonly", log)
		c := s.Dial(t)
		// Without a file there is nothing then, but with NOFLUSH.
		none := []string{"DEBUG RELOAD NOSAVE", "DEBUG RELOAD NOSAVE MERGE", "DEBUG RELOAD NOSAVE NOFLUSH"}
		if log == "no" {
			none = append(none, "DEBUG LOADAOF")
		}
		for _, line := range none {
			do(t, c, "SET gone 1")
			if v, err := c.Do("FUNCTION", "LOAD", "REPLACE", "#!lua name=gone\nredis.register_function('gone', function() end)"); err != nil || v.IsError() {
				t.Fatalf("FUNCTION LOAD: %v %v", v, err)
			}
			if v := do(t, c, line); !strings.HasPrefix(v, "-ERR Error trying to load the ") {
				t.Errorf("%s without a file: %s", line, v)
			}
			want, libraries := ":0", "[]"
			if strings.HasSuffix(line, "NOFLUSH") {
				want = ":1"
			}
			if got := do(t, c, "DBSIZE"); got != want {
				t.Errorf("after %s there are %s keys, not %s", line, got, want)
			}
			if got := do(t, c, "FUNCTION LIST"); (got == libraries) != (want == ":0") {
				t.Errorf("after %s there are the libraries %s", line, got)
			}
		}
		if log == "yes" { // the log knows it too
			do(t, c, "DEBUG RELOAD NOSAVE")
			end(t, c)
			gone(t, s)
			s = peer.LimitKV(t, "--dir", dir, "--appendonly", log)
			c = s.Dial(t)
			if keys, libraries := do(t, c, "DBSIZE"), do(t, c, "FUNCTION LIST"); keys != ":0" || libraries != "[]" {
				t.Errorf("started again there are %s keys and %s", keys, libraries)
			}
		}
		do(t, c, "FLUSHALL")
		do(t, c, "FUNCTION FLUSH")
		fillKinds(t, c)
		for _, line := range []string{"RL.ACQUIRE limiter 3 FIXED 10 100000", "DQ.ADD queue payload", "DQ.POP queue LEASE 100000"} {
			do(t, c, line)
		}
		digest := do(t, c, "DEBUG DIGEST")
		for _, line := range []string{"DEBUG RELOAD", "DEBUG RELOAD NOSAVE", "DEBUG LOADAOF", "DEBUG RELOAD MERGE"} {
			want := "+OK"
			if line == "DEBUG LOADAOF" && log == "no" {
				continue
			}
			if v := do(t, c, line); v != want {
				t.Errorf("%s: %s\n%s", line, v, s.Output())
			}
			if got := do(t, c, "DEBUG DIGEST"); got != digest {
				t.Errorf("after %s it has %s, not %s", line, got, digest)
			}
		}
		file := filepath.Join(dir, "dump.rdb")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, damaged := range [][]byte{text[:len(text)/2], append([]byte("X"), text[1:]...), append(text[:len(text)-1:len(text)-1], text[len(text)-1]^1)} {
			if err := os.WriteFile(file, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			if v := do(t, c, "DEBUG RELOAD NOSAVE"); v != "-ERR Error trying to load the RDB dump, check server logs." {
				t.Errorf("of a damaged file: %s", v)
			}
			if got := do(t, c, "DEBUG DIGEST"); got != digest {
				t.Fatalf("a damaged file made it %s, not %s", got, digest)
			}
		}
		do(t, c, "SET after 1")
		if log == "no" {
			do(t, c, "SAVE")
		}
		digest = do(t, c, "DEBUG DIGEST")
		end(t, c)
		gone(t, s)
		if got := do(t, peer.LimitKV(t, "--dir", dir, "--appendonly", log).Dial(t), "DEBUG DIGEST"); got != digest {
			t.Errorf("started again it has %s, not %s", got, digest)
		}
	}
}

// TestFlushedStays: after FLUSHALL no snapshot brings the keys back, neither the one before nor one that was being
// written. Without save points the file of before stays, as in Redis.
func TestFlushedStays(t *testing.T) {
	for _, test := range []struct{ save, flush, want string }{
		{"3600 1", "FLUSHALL", ":0"},
		{"3600 1", "EVAL return(redis.call('flushall')) 0", ":0"},
		{"", "FLUSHALL", ":100"},
	} {
		dir := t.TempDir()
		args := []string{"--dir", dir, "--save", test.save, "--enable-debug-command", "yes"}
		s := peer.LimitKV(t, args...)
		c := s.Dial(t)
		do(t, c, "DEBUG POPULATE 100")
		if got := do(t, c, "SAVE"); got != "+OK" {
			t.Fatal(got)
		}
		do(t, c, "CONFIG SET rdb-key-save-delay 10000") // a second in all
		do(t, c, "BGSAVE")
		until(t, c, "rdb_bgsave_in_progress:1")
		do(t, c, "CONFIG SET rdb-key-save-delay 0")
		if got := do(t, c, test.flush); got != "+OK" {
			t.Fatalf("%s: %s", test.flush, got)
		}
		until(t, c, "rdb_bgsave_in_progress:0")
		if err := s.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		gone(t, s)
		if left, _ := filepath.Glob(filepath.Join(dir, "temp-*")); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
		if got := do(t, peer.LimitKV(t, args...).Dial(t), "DBSIZE"); got != test.want {
			t.Errorf("save %q, %s: %s keys come back, want %s", test.save, test.flush, got, test.want)
		}
	}
}

// TestReadsOfOtherKeys: with appendfsync always a reply waits for what it tells of, and no other does. A write that takes
// long to be safe holds reads of its key back and those that see all keys, and of other keys hardly any.
func TestReadsOfOtherKeys(t *testing.T) {
	s := peer.LimitKV(t, "--dir", t.TempDir(), "--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes")
	c, writer := s.Dial(t), s.Dial(t)
	do(t, c, "DEBUG POPULATE 20000")
	const slow = 2 * time.Second
	do(t, c, fmt.Sprintf("DEBUG AOF-FLUSH-SLEEP %d", slow.Microseconds()))
	for _, held := range []string{"GET written", "EXISTS written", "MGET key:1 written", "DBSIZE", "EVAL return(redis.call('get',KEYS[1])) 1 written"} {
		began := time.Now() // before it is sent: the server may sleep before this test goes on
		if err := writer.Send("SET", "written", held); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // it is taken, and not safe
		waited := 0
		reader := s.Dial(t)
		for i := range 2000 {
			if err := reader.Send("GET", fmt.Sprintf("key:%d", i)); err != nil {
				t.Fatal(err)
			}
			if v, err := reader.ReceiveWithin(500 * time.Millisecond); err != nil {
				waited++
				reader = s.Dial(t) // the other is of no use any more
			} else if v.Text == "" {
				t.Fatalf("key:%d is not there", i)
			}
			if time.Since(began) > slow*3/4 {
				break
			}
		}
		if waited > 2 { // of 65,536 parts one is the key's, and the machine may be busy
			t.Errorf("%s: %d reads of other keys wait", held, waited)
		}
		v, err := reader.Do(strings.Fields(held)...)
		if took := time.Since(began); err != nil || took < slow {
			t.Errorf("%s: %v, %v after %v", held, v, err, took)
		}
		if _, err := writer.Receive(); err != nil {
			t.Fatal(err)
		}
	}
}
