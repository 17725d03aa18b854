package cmsgpack

// The library cmsgpack against recorded replies of Redis, and messages that try to cost too much.

import (
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/corpus"
	lua "github.com/yuin/gopher-lua"
)

var libraries = map[string]corpus.Library{"cmsgpack": unlimited}

func unlimited(L *lua.LState) *lua.LTable { return Open(L, &budget.Budget{}) }

func TestAsRedis(t *testing.T) {
	corpus.Run(t, "testdata/pack.txt", libraries)
	corpus.Run(t, "testdata/unpack.txt", libraries)
}

func TestBombsAreDefused(t *testing.T) {
	small := map[string]corpus.Library{"cmsgpack": func(L *lua.LState) *lua.LTable { return open(L, &budget.Budget{}, 1<<20) }}
	for script, want := range map[string]string{
		"local t = {} for i = 1, 100 do t[i] = t end return cmsgpack.pack(t)":   "error user_script:1: not enough memory",
		"return cmsgpack.pack(('x'):rep(1048577))":                              "error user_script:1: not enough memory",
		`return cmsgpack.unpack('\129\206\003\255\255\255\001')[67108863]`:      "1",
		`return cmsgpack.unpack('\129\206\000\000\255\255\001')[65535]`:         "1",
		`return cmsgpack.unpack('\221\255\255\255\255')`:                        "error user_script:1: Missing bytes in input.",
		`return #cmsgpack.unpack('\129\206\003\255\255\255\192')`:               "0",
		`local t = cmsgpack.unpack('\130\001\002\001\192') return t[1] or 'no'`: `"no"`,
	} {
		if got := corpus.Eval(script, small); got != want {
			t.Errorf("%s: %.100s", script, got)
		}
	}
}

// sorted are the bytes of a value in order: maps are packed in the order of the table, which depends on how it was
// filled, as in Lua.
func sorted(v lua.LValue) string {
	b := []byte(v.(lua.LString))
	slices.Sort(b)
	return string(b)
}

// deeper tells whether a value has tables in tables to more than a depth.
func deeper(v lua.LValue, depth int) (found bool) {
	t, ok := v.(*lua.LTable)
	if !ok || depth == 0 {
		return ok
	}
	t.ForEach(func(key, value lua.LValue) { found = found || deeper(key, depth-1) || deeper(value, depth-1) })
	return found
}

// FuzzUnpack: no bytes make it panic; what it takes is packed and unpacked to the same again, unless some of it is nested
// so deep that it is packed as nil.
func FuzzUnpack(f *testing.F) {
	for _, s := range []string{"\x93\x01\xa1a\xc0", "\x81\xa1a\xca\x3f\x80\x00\x00", "\xdd\xff\xff\xff\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xd9\x05abcde", strings.Repeat("\x81", nestingMax+1) + strings.Repeat("0", nestingMax+2)} {
		f.Add(s)
	}
	L := lua.NewState(lua.Options{RegistrySize: 1024, RegistryMaxSize: 1 << 17})
	lib := unlimited(L)
	call := func(name string, args ...lua.LValue) ([]lua.LValue, error) {
		L.SetTop(0)
		if err := L.CallByParam(lua.P{Fn: lib.RawGetString(name), NRet: lua.MultRet, Protect: true}, args...); err != nil {
			return nil, err
		}
		out := make([]lua.LValue, L.GetTop())
		for i := range out {
			out[i] = L.Get(i + 1)
		}
		return out, nil
	}
	f.Fuzz(func(t *testing.T, data string) {
		values, err := call("unpack", lua.LString(data))
		if err != nil || len(values) == 0 || len(values) > 1000 {
			return
		}
		packed, err := call("pack", values...)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if slices.ContainsFunc(values, func(v lua.LValue) bool { return deeper(v, nestingMax) }) {
			return
		}
		again, err := call("unpack", packed[0])
		if err != nil || len(again) != len(values) {
			t.Fatalf("%q is packed as %q, which gives %d values for %d: %v", data, packed[0], len(again), len(values), err)
		}
		twice, err := call("pack", again...)
		if err != nil || sorted(twice[0]) != sorted(packed[0]) {
			t.Fatalf("%q, then %q, then %q, %v", data, packed[0], twice[0], err)
		}
	})
}

func benchmark(b *testing.B, name string, value lua.LValue) {
	L := lua.NewState()
	defer L.Close()
	fn := unlimited(L).RawGetString(name)
	b.ReportAllocs()
	for b.Loop() {
		if err := L.CallByParam(lua.P{Fn: fn, NRet: 1}, value); err != nil {
			b.Fatal(err)
		}
		L.SetTop(0)
	}
}

func BenchmarkPack(b *testing.B) {
	L := lua.NewState()
	defer L.Close()
	t := L.CreateTable(3, 2)
	t.RawSetString("user", lua.LString("u-1000"))
	t.RawSetString("limit", lua.LNumber(60000))
	benchmark(b, "pack", t)
}

func BenchmarkUnpack(b *testing.B) {
	benchmark(b, "unpack", lua.LString("\x82\xa4user\xa6u-1000\xa5limit\xcd\xea\x60"))
}
