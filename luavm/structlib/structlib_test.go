package structlib

// The library struct against recorded replies of Redis.

import (
	"testing"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/corpus"
	lua "github.com/yuin/gopher-lua"
)

var libraries = map[string]corpus.Library{"struct": open}

func open(L *lua.LState) *lua.LTable { return Open(L, new(boxes.Boxes), new(budget.Budget)) }

func TestAsRedis(t *testing.T) { corpus.Run(t, "testdata/struct.txt", libraries) }

// FuzzUnpack: no format and no data make unpack panic or use more bytes than there are.
func FuzzUnpack(f *testing.F) {
	f.Add("fI", "\x00\x00\x80\x3f\x05\x00\x00\x00")
	f.Add("!8Bc0I", "\x03abc")
	f.Add(">i16s", "0123456789abcdefx\x00")
	L := lua.NewState(lua.Options{RegistrySize: 1024, RegistryMaxSize: 1 << 16})
	lib := open(L)
	f.Fuzz(func(t *testing.T, format, data string) {
		L.SetTop(0)
		if err := L.CallByParam(lua.P{Fn: lib.RawGetString("unpack"), NRet: lua.MultRet, Protect: true}, lua.LString(format), lua.LString(data)); err != nil {
			return
		}
		size := 0
		for i := 1; i <= L.GetTop(); i++ {
			if s, ok := L.Get(i).(lua.LString); ok {
				size += len(s)
			}
		}
		// With c0 and x, a format may use no bytes, but no byte of the data is used twice.
		if size > len(data) {
			t.Fatalf("%q of %q gives %d bytes", format, data, size)
		}
	})
}

func benchmark(b *testing.B, name string, args ...lua.LValue) {
	L := lua.NewState()
	defer L.Close()
	fn := open(L).RawGetString(name)
	b.ReportAllocs()
	for b.Loop() {
		if err := L.CallByParam(lua.P{Fn: fn, NRet: 0, Protect: false}, args...); err != nil {
			b.Fatal(err)
		}
		L.SetTop(0)
	}
}

func BenchmarkPack(b *testing.B) {
	benchmark(b, "pack", lua.LString("fI"), lua.LString("123456"), lua.LString("1"))
}

func BenchmarkUnpack(b *testing.B) {
	benchmark(b, "unpack", lua.LString("fI"), lua.LString("\x00\x00\x80\x3f\x05\x00\x00\x00"))
}
