package luavm

import "testing"

// Calls that end in the simple way (see plainly), and similar calls: with other numbers of arguments and results than expected,
// with a tail call to a function whose variables are captured, with captured variables of the caller.
func TestCalls(t *testing.T) {
	vm, host := New(Config{}), newTestHost()
	for script, want := range map[string]string{
		"local function f() local a = 5 end local x = f() return {x == nil and 1, (f()) == nil and 1}":                                                                        "*2\r\n:1\r\n:1\r\n",
		"local function f(a) return a end f(7) local x, y = f(8) return {x, y == nil and 1}":                                                                                  "*2\r\n:8\r\n:1\r\n",
		"local function f(a, b, c) return c end return {f(1, 2, 3), f(1, 2) == nil and 4, f(1, 2, 5, 6), (f())}":                                                              "*3\r\n:3\r\n:4\r\n:5\r\n",
		"local function f(a, b) return a, b end local x = f(1, 2) local t = {f(3, 4), f(5, 6)} return {x, #t, t[1], t[3]}":                                                    "*4\r\n:1\r\n:3\r\n:3\r\n:6\r\n",
		"local function f(a) a = a + 1 return a end local x = 70000 return f(f(f(x))) + x":                                                                                    ":140003\r\n",
		"local function f(a) return f end local x = f()()() return x == f and 1":                                                                                              ":1\r\n",
		"local x = 0.5 local function f() return x end local function g() local y = f() x = x + 1 return y + f() end return g() * 10 + x":                                     ":21\r\n",
		"local function g(v) local n = v return function() n = n + 1 return n end end local function f(v) return g(v) end local c, d = f(1), f(10) c() d() return {c(), d()}": "*2\r\n:3\r\n:12\r\n",
		"local function f(n) if n == 0 then return 0 end return f(n - 1) + 1 end return {f(15000), f(3)}":                                                                     "*2\r\n:15000\r\n:3\r\n",
		"local function f(n) return f(n + 1) + 1 end local ok = pcall(f, 1) local function g(a) return a end return {ok and 1 or 0, g(2)}":                                    "*2\r\n:0\r\n:2\r\n",
		"local function f() return 3 end local co = coroutine.wrap(function(a) local b = f() + a coroutine.yield(b) return f() + b end) return {co(1), co()}":                 "*2\r\n:4\r\n:7\r\n",
		"local C = {} C.__index = C function C:add(n) self.n = self.n + n end local D = setmetatable({}, C) D.__index = D local d = setmetatable({n = 1}, D) " +
			"for i = 1, 3 do d:add(i) end function D:add() self.n = 0 end local n = d.n d:add(1) return {n, d.n}": "*2\r\n:7\r\n:0\r\n",
	} {
		for range 2 { // the second time in the memory of the first run
			if got := eval(t, vm, host, script, nil, nil); got != want {
				t.Errorf("%s\n got %q\nwant %q", script, got, want)
			}
		}
	}
}
