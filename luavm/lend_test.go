package luavm

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/resp"
)

// Which functions get reused tables; scripts cannot notice it.
func TestOnlyRead(t *testing.T) {
	for _, test := range []struct {
		code       string
		keys, args bool
	}{
		{"function(k, a) return k[1] .. #a end", true, true},
		{"function(k, a) return {k[1], k[2], a[3], #k} end", true, true},
		{"function(k, a) for i = 1, #a do if a[i] == 'x' then return k[i] end end return #k + #a end", true, true},
		{"function(k, a) local n = tonumber(a[1]) while n and n > 0 do n = n - 1 end return {#k, n} end", true, true},
		{"function(k, a) return redis.sha1hex(k[1] or '') .. tostring(a[1]) end", true, true},
		{"function(k, a) local t = {x = a[1]} t[#t + 1] = k[2] return t end", true, true},
		{"function(k, a) return a[k[1]] or k.x end", true, true},
		{"function(k, a) local f = function() return 1 end return #k + f() + #a end", true, true},
		{"function(k) return #k end", true, false},
		{"function() return 1 end", false, false},
		{"function(...) return #(...) end", false, false},
		{"function(k, ...) return #k end", false, false},
		{"function(k, a) return k end", false, true},
		{"function(k, a) return a end", true, false},
		{"function(k, a) return #k, a end", true, false},
		{"function(k, a) k[1] = 'y' return k[1] end", false, true},
		{"function(k, a) local t = k return #t + #a end", false, true},
		{"function(k, a) local t = {} t[1] = a return #t + #k end", true, false},
		{"function(k, a) return {k, #a} end", false, true},
		{"function(k, a) return {unpack(k)} end", false, true},
		{"function(k, a) for i, v in ipairs(a) do return v end return k[1] end", true, false},
		{"function(k, a) table.insert(a, 'z') return #a end", true, false},
		{"function(k, a) saved = saved or k return #saved end", false, true},
		{"function(k, a) setmetatable(k, {__index = function() return 'm' end}) return k[9] end", false, true},
		{"function(k, a) local f = function() return #k end return f() + #a end", false, true},
		{"function(k, a) k = a return #k end", false, false},
		{"function(k, a) a = nil k = nil return 1 end", false, false},
		{"function(k, a) return k == a and 1 or 2 end", false, false},
		{"function(k, a) return (k or a)[1] end", false, false},
		{"function(k, a) return not k end", false, true},
		{"function(k, a) if a then return #k end end", true, false},
		{"function(k, a) return k:x() end", false, true},
		{"function(k, a) return tostring(k .. a) end", false, false},
		{"function(k, a) local x, y = k, 1 return #x end", false, true},
		{"function(k, a) coroutine.yield(a) return 1 end", true, false},
		{"function(k, a) local t = {a[1], a} return #t end", true, false},
		{"function(k, a) local t = {} t[k] = 1 return #a end", false, true},
	} {
		lib, err := ParseLibrary([]byte("#!lua name=l\nlocal saved\nredis.register_function('f', " + test.code + ")"))
		if err == nil {
			err = lib.Try(Config{}, nil)
		}
		if err != nil {
			t.Errorf("%s: %v", test.code, err)
			continue
		}
		vm := New(Config{})
		loaded, err := vm.loadLibrary(lib, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := loaded.callbacks["f"]
		if f.lendsKeys != test.keys || f.lendsArgs != test.args {
			t.Errorf("%s: %v, %v", test.code, f.lendsKeys, f.lendsArgs)
		}
		// The second call sees nothing of the first one's.
		bytes := func(texts ...string) (b [][]byte) {
			for _, s := range texts {
				b = append(b, []byte(s))
			}
			return b
		}
		call := func(vm *VM, keys, args [][]byte) string {
			var w resp.Writer
			vm.CallFunction(lib, "f", keys, args, nil, &w)
			return string(w.Buf)
		}
		sets := [][2][][]byte{{bytes("a", "b", "c"), bytes("x", "5", "z", "w")}, {bytes("d"), nil}, {nil, bytes("3", "x")}, {bytes("a", "q"), bytes("1")}}
		for i, s := range sets {
			if test.code == "function(k, a) saved = saved or k return #saved end" {
				break // it remembers
			}
			if got, want := call(vm, s[0], s[1]), call(New(Config{}), s[0], s[1]); got != want {
				t.Errorf("%s, call %d: %q, alone %q", test.code, i, got, want)
			}
		}
	}
}

func BenchmarkCallFunction(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			lib, err := ParseLibrary([]byte("#!lua name=l\nredis.register_function('f', function(k, a) return k[1] end)"))
			if err != nil || lib.Try(Config{}, nil) != nil {
				b.Fatal(err)
			}
			vm := New(Config{})
			keys := make([][]byte, n)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "limiter:%d", i)
			}
			var w resp.Writer
			b.ReportAllocs()
			for b.Loop() {
				w.Buf = w.Buf[:0]
				vm.CallFunction(lib, "f", keys, keys, nil, &w)
			}
		})
	}
}
