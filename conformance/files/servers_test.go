package files

// Files of other servers, recorded: what redis-server 7.0.15 and Valkey 9.1.2 wrote loads here, whether those servers are
// at hand or not. make record records anew where REDIS7_SERVER is set, and has redis-server 8.0 say what the files of
// the former hold; those of Valkey it cannot read.

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

var record = flag.Bool("record", false, "record the files of REDIS7_SERVER and VALKEY_SERVER anew")

// kept are the forms in which a server keeps its data: the files of each, and how a server is told to read them.
var kept = []struct{ name, args string }{
	{"snapshot", "--appendonly no"},
	{"preamble", "--appendonly yes"},
	{"commands", "--appendonly yes"},
	{"single", "--appendonly yes"}, // one append-only file, as before Redis 7
}

// before is what is in the base of the recorded files, and after what their log has in addition.
const before = `
SET text hello
SET empty ""
SET "" "no name"
SET int8 12
SET int64 1234567890123456789
SET at v PXAT 4102444800123
EVAL "redis.call('SET', KEYS[1], string.rep('abc', 5000))" 1 compressed
RPUSH list a 1 -5 70000 3000000000 text
EVAL "for i=1,200 do redis.call('RPUSH', KEYS[1], i) end redis.call('RPUSH', KEYS[1], 'a', string.rep('y', 9000), 'b')" 1 list:long
SADD set:int 1 2 300 70000 5000000000 -1
SADD set:packed a b 17 -4
EVAL "for i=1,600 do redis.call('SADD', KEYS[1], i) end for i=1,150 do redis.call('SADD', KEYS[2], 'member:'..i) end" 2 set:ints set:large
ZADD zset 1 a 2.5 b -inf c inf d -3 e 1e300 f
EVAL "for i=1,150 do redis.call('ZADD', KEYS[1], i / 8, 'member:'..i) end" 1 zset:large
HSET hash f v g 17 h ""
EVAL "for i=1,150 do redis.call('HSET', KEYS[1], 'field:'..i, i) end redis.call('HSET', KEYS[2], 'f', string.rep('z', 100))" 2 hash:large hash:long
PFADD hll a b c d e f
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
XADD stream 1-1 a 1 b 2
XADD stream 1-2 a 3 b 4
XADD stream 5-0 other fields here text
XDEL stream 1-2
XGROUP CREATE stream group 0
XREADGROUP GROUP group alice COUNT 1 STREAMS stream >
XREADGROUP GROUP group bob COUNT 1 STREAMS stream >
XGROUP CREATECONSUMER stream group idle
XADD stream:gone 3-3 f v
XDEL stream:gone 3-3
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
SELECT 9
SET nine 9 PXAT 4102444800000
SADD elsewhere x
SELECT 0
`

const after = `
APPEND text " and more"
INCR int8
INCRBYFLOAT float 1.25
EVAL "redis.call('SET', KEYS[1], 1) redis.call('INCR', KEYS[1])" 1 scripted
LPOP list
SPOP set:packed
LMOVE list:long moved LEFT RIGHT
ZADD zset INCR 2 a
ZRANGESTORE stored zset 0 2
HDEL hash g
XADD stream 6-1 late 1
XACK stream group 1-1
XTRIM stream MAXLEN 2
SETBIT bits 1000 1
PEXPIREAT list 4102444800456
SELECT 9
RENAME elsewhere renamed
SELECT 0
`

// withDeadlines are the fields with deadlines of servers that have them.
const withDeadlines = `
HSET due a 1 b 2 c 3
HPEXPIREAT due 4102444800123 FIELDS 2 a b
`

// send sends commands, a line each.
func send(t *testing.T, c *peer.Conn, lines string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		args, err := recorded.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Do(args...); err != nil || v.IsError() {
			t.Fatalf("%s: %v, %v", line, v, err)
		}
	}
}

// describe says what a server holds: a line for each key, with its type, deadline and digest.
func describe(t *testing.T, c *peer.Conn) []string {
	t.Helper()
	ask := func(args ...string) peer.Value {
		v, err := c.Do(args...)
		if err != nil || v.IsError() {
			t.Fatalf("%q: %v, %v", args, v, err)
		}
		return v
	}
	var lines []string
	for _, db := range []string{"0", "9"} {
		ask("SELECT", db)
		for _, k := range ask("KEYS", "*").Items {
			line := fmt.Sprintf("%s %q %s %s ", db, k.Text, ask("TYPE", k.Text).Text, ask("PEXPIRETIME", k.Text).Text)
			if k.Text == "due" { // the digests of servers differ in deadlines
				fields := []string{k.Text, "FIELDS", "3", "a", "b", "c"}
				line += oneLine(ask("HMGET", k.Text, "a", "b", "c")) + oneLine(ask(append([]string{"HPEXPIRETIME"}, fields...)...))
			} else {
				line += ask("DEBUG", "DIGEST-VALUE", k.Text).Items[0].Text
			}
			if strings.HasPrefix(k.Text, "stream") {
				for _, g := range ask("XINFO", "GROUPS", k.Text).Items {
					line += " " + oneLine(g)
				}
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	for _, f := range ask("FUNCTION", "LIST").Items {
		lines = append(lines, "function "+oneLine(f))
	}
	return lines
}

func oneLine(v peer.Value) string { return strings.ReplaceAll(v.String(), "\n", " ") }

// writeFiles has a server write its files, in all forms.
func writeFiles(t *testing.T, name, bin, to string) {
	t.Helper()
	copyAll := func(from, to string) {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, form := range []string{"preamble", "commands"} {
		dir := t.TempDir()
		preamble := map[string]string{"preamble": "yes", "commands": "no"}[form]
		s, err := peer.Start(name, bin, "--save", "", "--dir", dir, "--appendonly", "yes", "--aof-use-rdb-preamble", preamble, "--aof-timestamp-enabled", "yes")
		if err != nil {
			t.Fatal(err)
		}
		c := s.Dial(t)
		send(t, c, before)
		if name == "valkey" {
			send(t, c, withDeadlines)
		}
		send(t, c, "BGREWRITEAOF")
		for end := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			v, err := c.Do("INFO", "persistence")
			if err != nil || time.Now().After(end) {
				t.Fatal("no rewrite", err)
			}
			if strings.Contains(v.Text, "aof_rewrite_in_progress:0") && strings.Contains(v.Text, "aof_rewrites:1") || name == "redis7" && strings.Contains(v.Text, "aof_last_bgrewrite_status:ok") && strings.Contains(v.Text, "aof_rewrite_in_progress:0") {
				break
			}
		}
		send(t, c, after)
		if form == "preamble" {
			send(t, c, "SAVE")
			if err := os.MkdirAll(filepath.Join(to, "snapshot"), 0o755); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
			if err == nil {
				err = os.WriteFile(filepath.Join(to, "snapshot", "dump.rdb"), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.Stop()
		copyAll(filepath.Join(dir, "appendonlydir"), filepath.Join(to, form, "appendonlydir"))
		if form == "preamble" {
			parts, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.aof.*"))
			if err != nil {
				t.Fatal(err)
			}
			var whole []byte
			for _, kind := range []string{".base.", ".incr."} {
				for _, path := range parts {
					if strings.Contains(path, kind) {
						b, err := os.ReadFile(path)
						if err != nil {
							t.Fatal(err)
						}
						whole = append(whole, b...)
					}
				}
			}
			if err := os.MkdirAll(filepath.Join(to, "single"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(to, "single", "appendonly.aof"), whole, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// loaded starts a server on a copy of files.
func loaded(t *testing.T, from, args string, start func(args ...string) *peer.Server) *peer.Conn {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return start(append([]string{"--dir", dir, "--save", "", "--enable-debug-command", "yes"}, strings.Fields(args)...)...).Dial(t)
}

func TestFilesOfOtherServers(t *testing.T) {
	for name, variable := range map[string]string{"redis7": "REDIS7_SERVER", "valkey": "VALKEY_SERVER"} {
		dir := filepath.Join("testdata", name)
		if *record {
			if os.Getenv(variable) == "" {
				t.Fatalf("%s does not say where the server is whose files are recorded", variable)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			writeFiles(t, name, os.Getenv(variable), dir)
		}
		for _, form := range kept {
			t.Run(name+" "+form.name, func(t *testing.T) {
				expected := filepath.Join(dir, form.name+".keys")
				if *record {
					judge := func(args ...string) *peer.Server { return peer.Redis(t, true, args...) }
					if name == "valkey" {
						judge = func(args ...string) *peer.Server {
							s, err := peer.Start(name, os.Getenv(variable), args...)
							if err != nil {
								t.Fatal(err)
							}
							t.Cleanup(s.Stop)
							return s
						}
					}
					text := strings.Join(describe(t, loaded(t, filepath.Join(dir, form.name), form.args, judge)), "\n") + "\n"
					if err := os.WriteFile(expected, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				text, err := os.ReadFile(expected)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Split(strings.TrimSpace(string(text)), "\n")
				got := describe(t, loaded(t, filepath.Join(dir, form.name), form.args, func(args ...string) *peer.Server { return peer.LimitKV(t, args...) }))
				if len(want) < 30 {
					t.Errorf("only %d keys are expected", len(want))
				}
				for _, line := range want {
					if !slices.Contains(got, line) {
						t.Errorf("missing: %s", line)
					}
				}
				for _, line := range got {
					if !slices.Contains(want, line) {
						t.Errorf("too much: %s", line)
					}
				}
			})
		}
	}
}
