package cmsgpack

// The library cmsgpack against recorded replies of Redis, and messages that try to cost too much.

import (
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/budget"
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"
)

func unlimited(L *lua.LState) *lua.LTable { return Open(L, &boxes.Boxes{}, &budget.Budget{}) }

// call calls a function of a library in which nothing may become larger than a megabyte.
func call(L *lua.LState, name string, v lua.LValue) (lua.LValue, error) {
	L.SetTop(0)
	if err := L.CallByParam(lua.P{Fn: tables.GetString(open(L, &boxes.Boxes{}, &budget.Budget{}, 1<<20), name), NRet: 1, Protect: true}, v); err != nil {
		return nil, err
	}
	return L.Get(-1), nil
}

func TestBombsAreDefused(t *testing.T) {
	self := tables.New(0, 0)
	for i := range 100 {
		tables.SetInt(self, i+1, self)
	}
	L := lua.NewState()
	defer L.Close()
	for _, c := range []struct {
		name  string
		value lua.LValue
		want  string
	}{
		{"pack", self, "not enough memory"}, {"pack", lua.LString(strings.Repeat("x", 1<<20+1)), "not enough memory"},
		{"unpack", lua.LString("\xdd\xff\xff\xff\xff"), "Missing bytes in input."},
	} {
		if got, err := call(L, c.name, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.100v, %.200v; want %s", c.name, got, err, c.want)
		}
	}
	for packed, key := range map[string]int{"\x81\xce\x03\xff\xff\xff\x01": 1<<26 - 1, "\x81\xce\x00\x00\xff\xff\x01": 1<<16 - 1, "\x82\x02\xc0\x01\x01": 1} {
		got, err := call(L, "unpack", lua.LString(packed))
		if err != nil {
			t.Fatal(err)
		}
		table := got.(*lua.LTable)
		if tables.GetInt(table, key) != lua.LNumber(1) {
			t.Errorf("%q: [%d] is %v", packed, key, tables.GetInt(table, key))
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
	tables.Each(t, func(key, value lua.LValue) bool {
		found = found || deeper(key, depth-1) || deeper(value, depth-1)
		return !found
	})
	return found
}

// FuzzUnpack: no bytes make unpack panic; an unpacked value that is packed and unpacked again is the same, unless a part is
// nested so deep that it is packed as nil.
func FuzzUnpack(f *testing.F) {
	for _, s := range []string{"\x93\x01\xa1a\xc0", "\x81\xa1a\xca\x3f\x80\x00\x00", "\xdd\xff\xff\xff\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xd9\x05abcde", strings.Repeat("\x81", nestingMax+1) + strings.Repeat("0", nestingMax+2)} {
		f.Add(s)
	}
	L := lua.NewState(lua.Options{RegistrySize: 1024, RegistryMaxSize: 1 << 17})
	lib := unlimited(L)
	call := func(name string, args ...lua.LValue) ([]lua.LValue, error) {
		L.SetTop(0)
		if err := L.CallByParam(lua.P{Fn: tables.GetString(lib, name), NRet: lua.MultRet, Protect: true}, args...); err != nil {
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
	fn := tables.GetString(unlimited(L), name)
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
	t := tables.New(3, 2)
	tables.SetString(t, "user", lua.LString("u-1000"))
	tables.SetString(t, "limit", lua.LNumber(60000))
	benchmark(b, "pack", t)
}

func BenchmarkUnpack(b *testing.B) {
	benchmark(b, "unpack", lua.LString("\x82\xa4user\xa6u-1000\xa5limit\xcd\xea\x60"))
}
