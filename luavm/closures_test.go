package luavm

// Functions and their upvalues, whose memory the next run of a script reuses.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/resp"
)

func TestClosures(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	many := "local f = {} for i = 1, 192 do local n = i f[i] = function() n = n + 1 return n end end "
	for range 3 { // in memory of the run before, too
		for _, c := range []struct{ script, want string }{
			// Each closure has the variables of its own turn of the loop. There are more closures than the reused memory has room for.
			{many + "local sum = 0 for i = 1, #f do f[i]() sum = sum + f[i]() - i end return {#f, sum, f[1](), f[64](), f[65](), f[192]()}",
				"*6\r\n:192\r\n:384\r\n:4\r\n:67\r\n:68\r\n:195\r\n"},
			// More captures than the reused memory has room for, by closures that capture few and many variables.
			{"local sum = 0 for i = 1, 200 do local a, b, c = i, 2 * i, 3 * i local f = function() a = a + 1 return a + b + c end sum = sum + f() + f() - 12 * i end return sum", ":600\r\n"},
			{"local n = 0 for i = 1, 12 do " + variables(50) + " local f = function() return " + sumOf(50) + " end n = n + f() end return n", ":15300\r\n"},
			// Two closures share a variable, while it is open and after it is closed.
			{"local get, set do local x = 1 get = function() return x end set = function(v) x = v end set(2) x = x + 1 end set(get() * 10) return get()", ":30\r\n"},
			// Closures capture registers in any order, and variables that others have captured.
			{"local a, b, c = 1, 2, 3 local f = function() return c end local g = function() return a end local h = function() return b + a end " +
				"a, b, c = 10, 20, 30 return {f(), g(), h(), (function() return (function() return c + a end)() end)()}", "*4\r\n:30\r\n:10\r\n:30\r\n:40\r\n"},
			// Upvalues of a returned function are closed, and its registers belong to another function.
			{"local function counter() local n = 0 return function() n = n + 1 return n end end local x, y = counter(), counter() x() x() y() return {x(), y()}", "*2\r\n:3\r\n:2\r\n"},
			// After an error, no upvalue is open.
			{"local f local ok = pcall(function() local x = 1 f = function() x = x + 1 return x end f() error('e') end) local y, z = 7, 8 return {f(), f(), y, z}",
				"*4\r\n:3\r\n:4\r\n:7\r\n:8\r\n"},
			// Coroutines have their own registers.
			{"local x = 1 local co = coroutine.wrap(function() local y = 10 local f = function() x = x + 1 y = y + 1 return y end while true do coroutine.yield(f()) end end) " +
				"local g = function() return x end return {co(), co(), g(), x}", "*4\r\n:11\r\n:12\r\n:3\r\n:3\r\n"},
			{"local function f() end local function g() end return {f == f and 1, f == g and 1 or 0, (function() return f end)() == f and 1}", "*3\r\n:1\r\n:0\r\n:1\r\n"},
			{"local a = 1 " + strings.Repeat("local f = function() return a end ", 150) + "return f()", ":1\r\n"},
			{"local f f = function(n) if n == 0 then return 0 end local g = function() return f(n - 1) + 1 end return g() end return f(150)", ":150\r\n"},
		} {
			if got := eval(t, vm, host, c.script, nil, nil); got != c.want {
				t.Errorf("%s\n got %q\nwant %q", c.script, got, c.want)
			}
		}
	}
}

// variables declares v1 to vn, with the values 1 to n, and sumOf adds them.
func variables(n int) (s string) {
	for i := range n {
		s += fmt.Sprintf("local v%d = %d ", i+1, i+1)
	}
	return s
}

func sumOf(n int) string {
	s := "0"
	for i := range n {
		s += fmt.Sprintf("+v%d", i+1)
	}
	return s
}

// Wherever a script tries to store a function, the next script finds none. Otherwise it would find one of its own there.
func TestNoFunctionOutlivesScript(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	places := []string{
		"left", "_G.left", "string.left", "table.left", "math.left", "redis.left", "cjson.left", "cmsgpack.left", "bit.left", "struct.left", "os.left",
		"coroutine.left", "getmetatable('').left", "getmetatable('').__index.left", "getmetatable(_G).left", "getmetatable(_G).__index",
		"getmetatable(redis).left", "KEYS.left", "ARGV.left", "KEYS[1]", "ARGV[1]", "cjson.null.left", "arg", "_VERSION", "redis.call", "tostring",
	}
	refused := 0
	for _, place := range places {
		set := "local set = function() " + place + " = function() return 'left' end end " +
			"local raw = function() rawset(_G, 'left', function() return 'left' end) rawset(string, 'left', function() return 'left' end) end " +
			"local meta = function() setmetatable(_G, {__index = function() return 'left' end}) end " +
			"local ok = pcall(set) return {ok and 1 or 0, pcall(raw) and 1 or 0, pcall(meta) and 1 or 0}"
		got := eval(t, vm, host, set, []string{"k"}, []string{"v"})
		if strings.HasPrefix(got, "*3\r\n:0\r\n:0\r\n:0") {
			refused++
		} else if !strings.Contains(place, "KEYS") && !strings.Contains(place, "ARGV") {
			t.Errorf("%s: a script may write there: %q", place, got)
		}
		look := "local ok, v = pcall(function() return " + place + " end) if type(v) == 'function' then ok, v = pcall(v) end return tostring(v)"
		if got := eval(t, vm, host, look, []string{"k"}, []string{"v"}); strings.Contains(got, "left") && !strings.Contains(got, "nonexistent") {
			t.Errorf("%s: the next script finds %q", place, got)
		}
	}
	if refused < 15 {
		t.Errorf("only %d places were refused", refused)
	}
}

// Functions that a library stores do not change, whatever scripts run in between.
func TestLibraryKeepsFunctions(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	l, err := ParseLibrary([]byte("#!lua name=kept\nlocal list, n = {}, 0 redis.register_function('keep', function() local v = n n = n + 1 " +
		"list[#list + 1] = function() v = v + 100 return v end local sum = 0 for _, f in ipairs(list) do sum = sum + f() end return sum end)"))
	if err != nil {
		t.Fatal(err)
	}
	l.Compile()
	script := "local a, b, c = 'x', 'y', 'z' local f, g, h = function() return a end, function() return b end, function() return c end return f() .. g() .. h()"
	for i := range 50 {
		want := 0
		for k := range i + 1 {
			want += k + 100*(i-k+1)
		}
		w := &resp.Writer{Proto: 2}
		if vm.CallFunction(l, "keep", nil, nil, host, w); string(w.Buf) != fmt.Sprintf(":%d\r\n", want) {
			t.Fatalf("call %d: %q, want %d", i, w.Buf, want)
		}
		if got := eval(t, vm, host, script, nil, nil); got != "$3\r\nxyz\r\n" {
			t.Fatalf("the script in between: %q", got)
		}
	}
}
