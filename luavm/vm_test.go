package luavm

// A script runs, and the cost of a run.

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"
	"github.com/limitkv/limitkv/resp"
)

func eval(t testing.TB, vm *VM, host Host, body string, keys, args []string) string {
	t.Helper()
	s, err := Compile([]byte(body))
	if err != nil {
		return "-ERR " + err.Error() + "\r\n"
	}
	w := &resp.Writer{}
	vm.Run(s, bytesList(keys), bytesList(args), host, w)
	return string(w.Buf)
}

func bytesList(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func TestRunSmoke(t *testing.T) {
	vm, host := New(Config{Version: "8.0.6", VersionNum: 0x080006}), newTestHost()
	for _, c := range []struct{ script, want string }{
		{`return redis.call('incr', KEYS[1])`, ":1\r\n"},
		{`return {1, {2, 'x'}, false}`, "*3\r\n:1\r\n*2\r\n:2\r\n$1\r\nx\r\n$-1\r\n"},
		{`return redis.call('set', KEYS[1], ARGV[1])`, "+OK\r\n"},
		{`return redis.call('nosuch')`, "-ERR Unknown Redis command called from script script: 75ab5dc1e3c1d0d1ef0a2b2a0d1ef2b0ee9f1a04, on @user_script:1.\r\n"},
		{`local n = 0 local function inc() n = n + 1 end pcall(error, 'x') inc() return n`, ":1\r\n"},
		{`return {pcall(redis.call, 'nosuch')}`, "*2\r\n$-1\r\n$44\r\nERR Unknown Redis command called from script\r\n"},
	} {
		got := eval(t, vm, host, c.script, []string{"k"}, []string{"v"})
		if len(got) > 80 {
			got = got[:45]
			c.want = c.want[:45]
		}
		if got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.script, got, c.want)
		}
	}
}

// Redis stops where its stack would end. The depths are those of a real Redis.
func TestReplyDepth(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	for _, c := range []struct {
		script string
		n      int
		want   string // how the reply ends
	}{
		{`local t = {} local c = t for i = 1, %d do c[1] = {} c = c[1] end return t`, 7994, "*1\r\n*0\r\n"},
		{`local t = {} local c = t for i = 1, %d do c[1] = {} c = c[1] end return t`, 7995, "*1\r\n-ERR reached lua stack limit\r\n"},
		{`local t = {} local c = t for i = 1, %d do c[1] = {} c = c[1] end return t`, 9000, "*1\r\n-ERR reached lua stack limit\r\n"},
		{`local t = {map = {}} local c = t.map for i = 1, %d do c.a = {map = {}} c = c.a.map end return t`, 2664, "$1\r\na\r\n*0\r\n"},
		{`local t = {map = {}} local c = t.map for i = 1, %d do c.a = {map = {}} c = c.a.map end return t`, 2665,
			"$1\r\na\r\n*2\r\n-ERR reached lua stack limit\r\n-ERR reached lua stack limit\r\n"},
	} {
		if got := eval(t, vm, host, fmt.Sprintf(c.script, c.n), nil, nil); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s with %d ends with %q", c.script, c.n, got[max(0, len(got)-100):])
		}
	}
}

// A panic in a command is a bug in the command: no pcall may hide it, and the VM must be usable for the next script.
func TestPanicInCommand(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	for _, script := range []string{
		`return redis.call('panic')`,
		`return pcall(redis.call, 'panic')`,
		`local co = coroutine.create(function() redis.call('panic') end) return coroutine.resume(co)`,
		`local co = coroutine.create(function() coroutine.yield() redis.call('panic') end) coroutine.resume(co) return coroutine.resume(co)`,
		`table.foreach({1}, function() pcall(function() redis.call('panic') end) end)`,
	} {
		func() {
			defer func() {
				if r := recover(); r != "a bug in a command" {
					t.Errorf("%s: recovered %v", script, r)
				}
			}()
			eval(t, vm, host, script, nil, nil)
		}()
		if got := eval(t, vm, host, `return {pcall(error, KEYS[1])}`, []string{"k"}, nil); got != "*2\r\n$-1\r\n$1\r\nk\r\n" {
			t.Errorf("after %s: %q", script, got)
		}
	}
}

// A bug of the VM ends the run like an error, whatever the script catches, and the script's writes stay. The outcome says that
// the VM is broken, and the bug is logged.
func TestPanicOfVM(t *testing.T) {
	for _, script := range []string{
		`redis.call('set', 'k', 'v') boom()`,
		`redis.call('set', 'k', 'v') return pcall(boom)`,
		`redis.call('set', 'k', 'v') return {xpcall(function() boom() end, function() end)}`,
		`redis.call('set', 'k', 'v') table.sort({2, 1}, function() boom() end)`,
		`redis.call('set', 'k', 'v') local co = coroutine.wrap(function() boom() end) return pcall(co)`,
		`redis.call('set', 'k', 'v') local co = coroutine.create(function() coroutine.yield() boom() end) coroutine.resume(co) return coroutine.resume(co)`,
	} {
		vm, host := New(Config{}), newTestHost()
		tables.SetString(vm.env, "boom", vm.L.NewFunction(func(*lua.LState) int { return *(*int)(nil) }))
		s, err := Compile([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		w := &resp.Writer{Proto: 2}
		outcome := vm.Run(s, nil, nil, host, w)
		if got := string(w.Buf); got != "-ERR internal error\r\n" || !outcome.Broken || outcome.Failure != "ERR internal error" || host.strings["k"] != "v" {
			t.Errorf("%s: %q, %+v", script, got, outcome)
		}
		if len(host.log) != 1 || !strings.Contains(host.log[0], "nil pointer") || !strings.Contains(host.log[0], "TestPanicOfVM") {
			t.Errorf("%s: the log has %q", script, host.log)
		}
	}
}
