package cjson

// The library cjson against recorded replies of Redis, and documents that try to cost too much.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/corpus"
	lua "github.com/yuin/gopher-lua"
)

var libraries = map[string]corpus.Library{"cjson": unlimited}

func unlimited(L *lua.LState) *lua.LTable { return Open(L, &budget.Budget{}) }

func TestAsRedis(t *testing.T) {
	for _, file := range []string{"testdata/encode.txt", "testdata/decode.txt", "testdata/config.txt"} {
		corpus.Run(t, file, libraries)
	}
}

func TestSelfReferenceIsNoBomb(t *testing.T) {
	small := map[string]corpus.Library{"cjson": func(L *lua.LState) *lua.LTable { return open(L, &budget.Budget{}, 1<<20) }}
	for script, want := range map[string]string{
		"local t = {} t[1] = t return cjson.encode(t)":                                                            "error user_script:1: Cannot serialise, excessive nesting (1001)",
		"local t = {'" + strings.Repeat("x", 1000) + "'} for i = 1, 900 do t = {t, t} end return cjson.encode(t)": "error user_script:1: not enough memory",
		"local s = '" + strings.Repeat("x", 1<<20+1) + "' return cjson.new().encode(s)":                           "error user_script:1: not enough memory",
	} {
		if got := corpus.Eval(script, small); got != want {
			t.Errorf("%.60s: %.100s", script, got)
		}
	}
}

// sorted are the bytes of a text in order: the fields of a table are written in its order, which depends on how it was
// filled, as in Lua.
func sorted(v lua.LValue) string {
	b := []byte(v.(lua.LString))
	slices.Sort(b)
	return string(b)
}

// FuzzDecode: no text makes it panic; what it takes it writes again, and what Go's JSON takes it takes too.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u00e9\ud83d\ude00",null,true]}`, `[[[]]]`, `"\`, `-0x1p4`, `{"a"`, `nan(1)`, "\x00"} {
		f.Add(s)
	}
	L := lua.NewState()
	lib := unlimited(L)
	call := func(name string, v lua.LValue) (lua.LValue, error) {
		L.SetTop(0)
		err := L.CallByParam(lua.P{Fn: lib.RawGetString(name), NRet: 1, Protect: true}, v)
		if err != nil {
			return nil, err
		}
		return L.Get(-1), nil
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := call("decode", lua.LString(text))
		if err != nil {
			if json.Valid([]byte(text)) && !strings.Contains(err.Error(), "too many nested") && !strings.Contains(strings.ToLower(text), `\ud`) {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		written, err := call("encode", v)
		if err != nil {
			return // nan, or a table that became a sparse array
		}
		again, err := call("decode", written)
		if err != nil {
			t.Fatalf("%q is written as %q, which is refused: %v", text, written, err)
		}
		if twice, err := call("encode", again); err != nil || sorted(twice) != sorted(written) {
			t.Fatalf("%q, then %q, then %v, %v", text, written, twice, err)
		}
	})
}

var document = `{"user":"u-1000","limits":[{"rate":10,"interval":60000},{"rate":1000,"interval":3600000}],"active":true,"name":"a \"quoted\" name","ratio":0.25}`

func BenchmarkDecode(b *testing.B) {
	L := lua.NewState()
	defer L.Close()
	fn := unlimited(L).RawGetString("decode")
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if err := L.CallByParam(lua.P{Fn: fn, NRet: 1}, lua.LString(document)); err != nil {
			b.Fatal(err)
		}
		L.SetTop(0)
	}
}

func BenchmarkEncode(b *testing.B) {
	L := lua.NewState()
	defer L.Close()
	lib := unlimited(L)
	if err := L.CallByParam(lua.P{Fn: lib.RawGetString("decode"), NRet: 1}, lua.LString(document)); err != nil {
		b.Fatal(err)
	}
	value := L.Get(-1)
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if err := L.CallByParam(lua.P{Fn: lib.RawGetString("encode"), NRet: 1}, value); err != nil {
			b.Fatal(err)
		}
		L.SetTop(0)
	}
}
