package luavm

import (
	"errors"
	"runtime"
	"testing"

	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/resp"
)

// Coroutines that yield and continue: the values passed, their errors, and who gets these. A Redis, if there is one, must give
// the same replies.
var resumed = []struct{ script, want string }{
	{"local co = coroutine.create(function(...) local a, b, c = coroutine.yield(...) local d = coroutine.yield(a, b, c) return d, 'end' end) " +
		"local t = {coroutine.resume(co, 1, 2)} t[4], t[5], t[6], t[7] = select(2, coroutine.resume(co, 3, nil, 5)) return {t[2], t[3], t[4], t[5] == nil and 4, t[6], " +
		"(select('#', coroutine.resume(co, 6, 7))), coroutine.status(co), select(2, coroutine.resume(co))}",
		"*8\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:3\r\n$4\r\ndead\r\n$28\r\ncannot resume dead coroutine\r\n"},
	{"local co = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i, i * 1.5e6) end return 'done', 7 end) local t = {co()} " +
		"for i = 1, 5 do local a, b, c = co() t[#t + 1] = tostring(a) .. tostring(b) .. tostring(c) end co = nil return t",
		"*7\r\n:1\r\n:1500000\r\n$11\r\n23000000nil\r\n$11\r\n34500000nil\r\n$11\r\n46000000nil\r\n$11\r\n57500000nil\r\n$8\r\ndone7nil\r\n"},
	{"local co = coroutine.wrap(function() return coroutine.yield(coroutine.yield(1)) end) return {co(), co(2), co(3, 4)}",
		"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n"},
	{"local co = coroutine.create(function() coroutine.yield() error('no') end) coroutine.resume(co) local ok, e = coroutine.resume(co) " +
		"return {tostring(ok), e, coroutine.status(co), select(2, coroutine.resume(co))}",
		"*4\r\n$5\r\nfalse\r\n$17\r\nuser_script:1: no\r\n$4\r\ndead\r\n$28\r\ncannot resume dead coroutine\r\n"},
	{"local co = coroutine.create(function() coroutine.yield() error({err = 'E'}) end) coroutine.resume(co) local ok, e, more = coroutine.resume(co) " +
		"return {tostring(ok), type(e), type(more)}",
		"*3\r\n$5\r\nfalse\r\n$5\r\ntable\r\n$3\r\nnil\r\n"},
	{"local co = coroutine.create(function() coroutine.yield() error() end) coroutine.resume(co) local t = {coroutine.resume(co)} return {tostring(t[1]), tostring(t[2]), #t}",
		"*3\r\n$5\r\nfalse\r\n$3\r\nnil\r\n:1\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() error('no') end) co()\nlocal ok, e = pcall(function()\nco() end) return {e, select(2, pcall(co))}",
		"*2\r\n$32\r\nuser_script:3: user_script:1: no\r\n$28\r\ncannot resume dead coroutine\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() error(7) end) co() local ok, e = pcall(function()\nlocal x = co() return x end) return {e, type(e)}",
		"*2\r\n$31\r\nuser_script:2: user_script:1: 7\r\n$6\r\nstring\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() error({err = 'E'}) end) co() local ok, e = pcall(function() local x = co() return x end) return e",
		"$1\r\nE\r\n"},
	{"local co = coroutine.wrap(function()\ncoroutine.yield()\nlocal t = nil; return t.x end) co()\nco() return 1",
		"-ERR user_script:4: user_script:3: attempt to index local 't' (a nil value) script: dbd752dce5ec8f8c98d6d58e7f04648c9ac8910f, on @user_script:4.\r\n"},
	{"local co = coroutine.wrap(function()\ncoroutine.yield()\nerror({err = 'E'}) end) co()\nlocal x = co() return 1",
		"-E script: b18fd878d9afb7a0fdee9a21452bea382c578f95, on @user_script:4.\r\n"},
	{"local function nest(n) local inner = n > 0 and nest(n - 1) return coroutine.wrap(function() if inner then inner() end coroutine.yield() if inner then local x = inner() end error('deep') end) end " +
		"local co = nest(3) co() local ok, e = pcall(function() local x = co() end) return e",
		"$79\r\nuser_script:1: user_script:1: user_script:1: user_script:1: user_script:1: deep\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() local ok, e = pcall(function() local x = nil; return x.y end) coroutine.yield(e) local ok, e = pcall(error, 'two') return e end) " +
		"co() return {co(), co()}",
		"*2\r\n$55\r\nuser_script:1: attempt to index local 'x' (a nil value)\r\n$3\r\ntwo\r\n"},
	{"local a, b a = coroutine.create(function() coroutine.yield() return coroutine.resume(b) end) " +
		"b = coroutine.create(function() coroutine.yield() local ok, e = coroutine.resume(a) local ok2, e2 = coroutine.resume(b) return coroutine.status(a), e, e2, coroutine.status(b) end) " +
		"coroutine.resume(a) coroutine.resume(b) local t = {coroutine.resume(a)} t[1] = nil t[2] = tostring(t[2]) return {t[2], t[3], t[4], t[5], t[6]}",
		"*5\r\n$4\r\ntrue\r\n$6\r\nnormal\r\n$30\r\ncannot resume normal coroutine\r\n$31\r\ncannot resume running coroutine\r\n$7\r\nrunning\r\n"},
	{"local x, seen = 0.5, {} local function co(step) return coroutine.wrap(function() local mine = 0 while true do x = x + step mine = mine + x seen[#seen + 1] = function() mine = mine + 1 return mine end coroutine.yield(mine) end end) end " +
		"local a, b = co(1), co(0.25) for i = 1, 3 do x = x + a() + b() end return {tostring(x), tostring(seen[1]()), tostring(seen[2]()), tostring(a())}",
		"*4\r\n$4\r\n80.5\r\n$2\r\n30\r\n$5\r\n30.75\r\n$5\r\n111.5\r\n"},
	{"local depth = 0 local function chain(n) return coroutine.create(function() local inner = chain(n + 1) coroutine.yield() depth = n local ok = coroutine.resume(inner) if not ok then return 0 end local ok, e = coroutine.resume(inner) return ok, e end) end " +
		"local co = chain(1) coroutine.resume(co) coroutine.resume(co) return depth > 0 and 1",
		":1\r\n"},
	{"local all = {} for i = 1, 260 do all[i] = coroutine.wrap(function() coroutine.yield() if all[i + 1] then local x = all[i + 1]() return x end return 'all' end) all[i]() end local ok, e = pcall(function() local x = all[1]() return x end) return {tostring(ok), #e}",
		"*2\r\n$5\r\nfalse\r\n:3001\r\n"},
	{"local all = {} for i = 1, 150 do all[i] = coroutine.wrap(function() coroutine.yield() if all[i + 1] then local x = all[i + 1]() return x end return 'all' end) all[i]() end local x = all[1]() return x",
		"$3\r\nall\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() table.sort({3, 1, 2}, function(a, b) coroutine.yield() return a < b end) end) co() local ok, e = pcall(function() local x = co() end) return e",
		"$65\r\nuser_script:1: attempt to yield across metamethod/C-call boundary\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() table.sort({3, 1, 2}, function(a, b) error('in sort') end) end) co() local ok, e = pcall(function() local x = co() end) return e",
		"$37\r\nuser_script:1: user_script:1: in sort\r\n"},
	{"local inner = coroutine.wrap(function() while true do coroutine.yield(1) end end) local n = 0 local co = coroutine.wrap(function() coroutine.yield() " +
		"table.sort({3, 1, 2}, function(a, b) n = n + inner() return a < b end) local ok, e = pcall(table.sort, {2, 1}, function(a, b) local x = inner() error('s' .. x) end) coroutine.yield(e) return n > 2 and 1 end) co() return {co(), co()}",
		"*2\r\n$17\r\nuser_script:1: s1\r\n$-1\r\n"},
	{"local gen = function(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end local s = 0 for a in gen(4) do for b in gen(a) do s = s + b end end return s",
		":20\r\n"},
	{"local co = coroutine.wrap(function(...) while true do local n = select('#', coroutine.yield(...)) coroutine.yield(n) end end) local t = {} for i = 1, 3000 do t[i] = i end co(unpack(t)) local n = co(unpack(t)) return n",
		":3000\r\n"},
	{"local function deep(n) if n == 0 then return coroutine.yield('bottom') end local x = deep(n - 1) return x + 1 end local co = coroutine.wrap(function() coroutine.yield() local x = deep(150) return x end) co() local b = co() local x = co(5) return {b, x}",
		"*2\r\n$6\r\nbottom\r\n:155\r\n"},
	{"local co = coroutine.wrap(function() coroutine.yield() local function f(n) return f(n + 1) + 1 end return f(1) end) co() local ok, e = pcall(function() local x = co() end) return {tostring(ok), tostring(e):match('stack overflow') or tostring(e)}",
		"*2\r\n$5\r\nfalse\r\n$14\r\nstack overflow\r\n"},
	{"local co = coroutine.create(function() coroutine.yield() local r = redis.call('nonesuch') end) coroutine.resume(co) local ok, e = coroutine.resume(co) return {tostring(ok), type(e), e.err}",
		"*3\r\n$5\r\nfalse\r\n$5\r\ntable\r\n$44\r\nERR Unknown Redis command called from script\r\n"},
	{"local t = setmetatable({}, {__index = function(t, k) local x = k() return x end}) local co = coroutine.wrap(function() coroutine.yield() coroutine.yield('by index') error('x') end) co() local a = t[co] local ok, e = pcall(function() return t[co] end) return {a, e}",
		"*2\r\n$8\r\nby index\r\n$31\r\nuser_script:1: user_script:1: x\r\n"},
}

func TestResumed(t *testing.T) {
	var o *oracle
	if oracleNamed() {
		o = startOracle(t)
	}
	vm, host := New(Config{}), newTestHost()
	for _, c := range resumed {
		if o != nil {
			if got := o.eval(c.script, nil, nil); got != c.want {
				t.Errorf("%s\nRedis answers %q\n       want %q", c.script, got, c.want)
			}
		}
		for range 2 { // on what the run before has left, too
			got := eval(t, vm, host, c.script, nil, nil)
			if got != c.want {
				t.Errorf("%s\n got %q\nwant %q", c.script, got, c.want)
			}
		}
	}
}

// If the watch ends a run in a coroutine, that coroutine and those that resumed it are dead: a library that stored it finds it dead.
func TestResumedIsEnded(t *testing.T) {
	const dead = "$28\r\ncannot resume dead coroutine\r\n"
	for body, answers := range map[string][]string{
		`co = co or coroutine.create(function() coroutine.yield() while true do end end)`: {"$3\r\nnil\r\n", "-ERR ended", dead},
		`co = co or coroutine.create(function() while true do end end)`:                   {"-ERR ended", dead},
		`if co then co, inner = inner, co end co = co or coroutine.create(function()
			inner = coroutine.create(function() while true do end end)
			coroutine.resume(inner)
		end)`: {"-ERR ended", dead, dead},
		`if co then co, inner = inner, co end co = co or coroutine.create(function()
			inner = coroutine.wrap(function() while true do end end)
			coroutine.yield() inner()
		end)
		if not inner then coroutine.resume(co) end
		if type(co) == 'function' then local ok, e = pcall(co) return e:match('cannot .*') end`: {"-ERR ended", dead, dead},
	} {
		vm, host := New(Config{}), newTestHost()
		l, err := ParseLibrary([]byte("#!lua name=l\nlocal co, inner\nredis.register_function('f', function() " + body +
			" local ok, e = coroutine.resume(co) return tostring(e) end)"))
		if err == nil {
			err = l.Try(Config{}, host)
		}
		if err != nil {
			t.Fatal(err)
		}
		vm.Watch(func() (int, error) { return budget.Steps, errors.New("ended") })
		for i, want := range answers {
			w := &resp.Writer{Proto: 2}
			if vm.CallFunction(l, "f", nil, nil, host, w); len(w.Buf) < len(want) || string(w.Buf[:len(want)]) != want {
				t.Errorf("%s\ncall %d: %q, want %q", body, i, w.Buf, want)
			}
		}
	}
}

// A suspended coroutine is collected after its run, also if it has the stack of an ended one.
func TestWaitingCoroutinesGo(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for _, ends := range []string{"return 1", "error('x')"} {
		eval(t, vm, host, `pcall(coroutine.wrap(function() `+ends+` end))`, nil, nil)
		eval(t, vm, host, `local co = coroutine.wrap(function() local s = string.rep('x', 5e7) coroutine.yield() return s end) co()`, nil, nil)
		if now := held(); now > before+10<<20 {
			t.Errorf("%s: %d bytes are held, %d before", ends, now, before)
		}
	}
	runtime.KeepAlive(vm)
}
