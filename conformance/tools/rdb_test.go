// redis-cli --rdb takes all data out of limitkv as a file, which the real Redis loads.
package tools

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// more is data beside people in all the forms that values have.
const more = `
SELECT 0
HEXPIRE hash:b 1000 FIELDS 1 f1
XGROUP CREATE stream:a group 0
XREADGROUP GROUP group one COUNT 1 STREAMS stream:a >
EVAL "for i=1,1000 do redis.call('HSET', 'large:hash', 'field'..i, i) redis.call('SADD', 'large:set', 'member'..i) redis.call('ZADD', 'large:zset', i, 'member'..i) redis.call('RPUSH', 'large:list', string.rep('x', i)) redis.call('XADD', 'large:stream', i..'-1', 'k', i) end" 0
EVAL "for i=1,600 do redis.call('SADD', 'large:integers', i) redis.call('HSET', 'large:due', i, 'v') redis.call('HEXPIREAT', 'large:due', 4102444800 + i, 'FIELDS', 1, i) end" 0
SETRANGE large:string 100000 x
SET "" empty
PEXPIREAT str:a 4102444800000
SELECT 9
SET nine 9
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
`

func TestCLIRDB(t *testing.T) {
	cli, check := find(t, "redis-cli"), find(t, "redis-check-rdb")
	dir := t.TempDir()
	limitkv := peer.LimitKV(t)
	load(t, limitkv, people+more)
	fetch := func(what ...string) result {
		t.Helper()
		return run(t, cli, limitkv, call{args: append([]string{"-p", "{port}"}, what...)})
	}
	loaded := func(name string) *peer.Server {
		t.Helper()
		if out, err := exec.Command(check, filepath.Join(dir, name)).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Checksum OK")) {
			t.Errorf("redis-check-rdb: %v\n%s", err, out)
		}
		return peer.Redis(t, required, "--dir", dir, "--dbfilename", name)
	}

	got := fetch("--rdb", filepath.Join(dir, "all.rdb"))
	if got.code != 0 || !strings.Contains(got.output, "Transfer finished with success") || strings.Contains(got.output, "error") {
		t.Fatalf("exit code %d: %s", got.code, got.output)
	}
	redis := loaded("all.rdb")
	a, b := limitkv.Dial(t), redis.Dial(t)
	// What was changed in place is no short string any more, and is one when it was loaded.
	if want, got := ask(t, limitkv, a, "GETDEL hll"), ask(t, redis, b, "GETDEL hll"); !want.Equal(got) {
		t.Errorf("hll is %v, of Redis %v", want, got)
	}
	for db := range 16 {
		for _, c := range []*peer.Conn{a, b} {
			if v, err := c.Do("SELECT", strconv.Itoa(db)); err != nil || v.IsError() {
				t.Fatal(v, err)
			}
		}
		if what, want, got, err := peer.CompareKeyspaces(a, b); err != nil || what != "" {
			t.Errorf("database %d: %s, %v\n of limitkv %.300s\n   of Redis %.300s", db, what, err, want, got)
		}
	}
	for _, line := range []string{"SELECT 0", "FUNCTION LIST WITHCODE", "PEXPIRETIME str:a", "HPEXPIRETIME large:due FIELDS 2 1 600",
		"XINFO GROUPS stream:a", "XPENDING stream:a group", "OBJECT ENCODING large:hash", "GET \"\""} {
		if want, got := ask(t, limitkv, a, line), ask(t, redis, b, line); !want.Equal(got) {
			t.Errorf("%s\n of limitkv %v\n   of Redis %v", line, want, got)
		}
	}
	if n := ask(t, redis, b, "DBSIZE"); len(n.Text) < 2 {
		t.Errorf("there are %v keys", n)
	}

	if got := fetch("--functions-rdb", filepath.Join(dir, "functions.rdb")); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.output)
	}
	redis = loaded("functions.rdb")
	b = redis.Dial(t)
	if list, n := ask(t, redis, b, "FUNCTION LIST"), ask(t, redis, b, "DBSIZE"); len(list.Items) != 1 || n.Text != "0" {
		t.Errorf("%v libraries and %v keys", list, n)
	}

	if got := fetch("--rdb", "-"); !strings.Contains(got.output, "REDIS0012") {
		t.Errorf("on standard output: %.300q", got.output)
	}
	// What Redis has no type for is in the file, which redis-check-rdb accepts.
	load(t, limitkv, "RL.SET limiter GCRA 10 1000\nDQ.SET queue LEASE 100000\nDQ.ADD queue ID one payload\nDQ.ADD queue DELAY 1000 more\nDQ.POP queue")
	if got := fetch("--rdb", filepath.Join(dir, "own.rdb")); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.output)
	}
	if out, err := exec.Command(check, filepath.Join(dir, "own.rdb")).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Checksum OK")) {
		t.Errorf("redis-check-rdb: %v\n%s", err, out)
	}
}

// TestCLIClusterBackup: it fetches every node's file, without saying what it wants.
func TestCLIClusterBackup(t *testing.T) {
	cli, dir := find(t, "redis-cli"), t.TempDir()
	limitkv := peer.LimitKV(t, "--cluster-enabled", "yes")
	load(t, limitkv, "SET a b\nSET c d")
	got := run(t, cli, limitkv, call{args: []string{"--cluster", "backup", "{addr}", dir}})
	if got.code != 0 || !strings.Contains(got.output, "Backup created") {
		t.Fatalf("exit code %d: %s", got.code, got.output)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.rdb"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	redis := peer.Redis(t, required, "--dir", dir, "--dbfilename", filepath.Base(files[0]))
	if n := ask(t, redis, redis.Dial(t), "DBSIZE"); n.Text != "2" {
		t.Errorf("Redis has %v keys of it", n)
	}
}
