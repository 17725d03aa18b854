package luavm

// Numbers without boxes must not change later where they were stored: in tables, upvalues,
// arguments, results, coroutines, errors, and in registers beyond those with a place.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/resp"
)

func TestNumbersStay(t *testing.T) {
	many := &strings.Builder{} // locals beyond those that have a place
	for i := range 90 {
		fmt.Fprintf(many, "local v%d = n + %d ", i, i)
	}
	for script, want := range map[string]string{
		"local t, x = {}, 0.5 for i = 1, 3 do x = x + 1 t[i] = x end return t[1] .. ' ' .. t[2] .. ' ' .. t[3]":                                                                                                       "1.5 2.5 3.5",
		"local t, x = {}, 0.5 for i = 1, 3 do x = x + 1 t[x] = i end return t[1.5] .. t[2.5] .. t[3.5]":                                                                                                               "123",
		"local x = 1e6 local y = x + 0.5 local z = y y = y + 1 return z .. ' ' .. y":                                                                                                                                  "1000000.5 1000001.5",
		"local t = {} for i = 1e6, 1e6 + 2 do t[#t + 1] = function() i = i + 0.5 return i end end return t[1]() .. ' ' .. t[1]() .. ' ' .. t[3]()":                                                                    "1000000.5 1000001 1000002.5",
		"local n = 0.25 local function f() n = n + 1 end f() n = n + 1 f() return tostring(n)":                                                                                                                        "3.25",
		"local function f(a, b, c) a = a + 1 b = b + a return a, b, c end local x = 1e7 + 0.5 local p, q, r = f(x + 1, x + 2) return p .. ' ' .. q .. ' ' .. tostring(r) .. x":                                        "10000002.5 20000005 nil10000000.5",
		"local function f(n) if n < 0.5 then return n end local m = n - 1 return m + f(n - 1) + m end return tostring(f(5.25))":                                                                                       "22.75",
		"local function f(...) local a, b = ... a = a + 1 return select('#', ...) .. a .. b end local x = 70000.5 x = x + 1 return f(x, x + 1, x)":                                                                    "370002.570002.5",
		"local x = 0.5 local ok, e = pcall(function() x = x + 1 error({x}) end) x = x + 1 return e[1] .. ' ' .. x":                                                                                                    "1.5 2.5",
		"local x, y = 0.5 local ok = pcall(function() local z = x + 1 y = function() return z end z = z + 1 local a = nil; a() end) return y() .. ' ' .. tostring(ok)":                                                "2.5 false",
		"local co = coroutine.wrap(function(a) while true do a = a + 0.5 a = a + coroutine.yield(a) end end) local x = 1.25 x = x + co(x) x = x + co(x) return tostring(x)":                                           "8.25",
		"local t = setmetatable({}, {__index = function(t, k) return k + 0.5 end, __newindex = function(t, k, v) rawset(t, k, v + 0.5) end}) local x = 1.5 x = x + 1 t[x] = x x = x + 1 return t[2.5] .. ' ' .. t[x]": "3 4",
		"local x = 1.5 x = x + 1 local t = {x, x + 1, y = x} x = x + 1 return t[1] .. ' ' .. t[2] .. ' ' .. t.y":                                                                                                      "2.5 3.5 2.5",
		"local a = 0.5 local b = a + 1 local c = b or a b = b + 1 return c .. ' ' .. (false or b)":                                                                                                                    "1.5 2.5",
		"local s = 0 for i = 1.5, 3, 0.25 do local j = i i = i + 1 s = s + j + i end return tostring(s)":                                                                                                              "38.5",
		"local r = {} for i = 3.5, 1, -1 do r[#r + 1] = -i % 2 .. '' end return table.concat(r, ' ')":                                                                                                                 "0.5 1.5 0.5",
		"local n = 0.5 " + many.String() + " n = v63 + v64 + v65 v64 = v64 + 1 local k = v64 v64 = v64 + 1 return n .. ' ' .. v89 .. ' ' .. k .. ' ' .. v64":                                                          "193.5 89.5 65.5 66.5",
		"local function deep(n) local m = n * 1.5 if n == 0 then return m end local r = deep(n - 1) return r + m end return tostring(deep(5000))":                                                                     "18753750",
		"local f = loadstring('local a = ... a = a + 1 return a, a + 1') local x = 65536 x = x + 1 local a, b = f(x) return x .. ' ' .. a .. ' ' .. b":                                                                "65537 65538 65539",
		"local t = {3.5, 1.5, 2.5} table.sort(t, function(a, b) a = a + 1 b = b + 1 return a < b end) return table.concat(t, ' ')":                                                                                    "1.5 2.5 3.5",
	} {
		vm := New(Config{})
		s, err := Compile([]byte(script))
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		for range 3 {
			w := &resp.Writer{Proto: 2}
			vm.Run(s, nil, nil, newTestHost(), w)
			if got := string(w.Buf); got != fmt.Sprintf("$%d\r\n%s\r\n", len(want), want) {
				t.Errorf("%s\ngives %q, want %q", script, got, want)
				break
			}
		}
	}
}
