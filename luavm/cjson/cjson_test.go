package cjson

// The library cjson against recorded replies of Redis, and documents that try to cost too much.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/luavm/budget"
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"
)

func unlimited(L *lua.LState) *lua.LTable { return Open(L, &budget.Budget{}) }

// call calls a function of a library in which nothing may become larger than a megabyte.
func call(L *lua.LState, name string, v lua.LValue) (lua.LValue, error) {
	L.SetTop(0)
	if err := L.CallByParam(lua.P{Fn: tables.GetString(open(L, &budget.Budget{}, 1<<20), name), NRet: 1, Protect: true}, v); err != nil {
		return nil, err
	}
	return L.Get(-1), nil
}

func TestSelfReferenceIsNoBomb(t *testing.T) {
	self := tables.New(1, 0)
	tables.SetInt(self, 1, self)
	doubled := tables.New(1, 0)
	tables.SetInt(doubled, 1, lua.LString(strings.Repeat("x", 1000)))
	for range 900 {
		pair := tables.New(2, 0)
		tables.Fill(pair, 1, []lua.LValue{doubled, doubled})
		doubled = pair
	}
	L := lua.NewState()
	defer L.Close()
	for _, c := range []struct {
		value lua.LValue
		want  string
	}{
		{self, "Cannot serialise, excessive nesting (1001)"}, {doubled, "not enough memory"}, {lua.LString(strings.Repeat("x", 1<<20+1)), "not enough memory"},
	} {
		if got, err := call(L, "encode", c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100v, %.200v; want %s", got, err, c.want)
		}
	}
}

// sorted are the bytes of a text in order: fields are written in the order of the table, which depends on how it was
// filled, as in Lua.
func sorted(v lua.LValue) string {
	b := []byte(v.(lua.LString))
	slices.Sort(b)
	return string(b)
}

// FuzzDecode: no text makes decode panic; encode can write every decoded value, and decode accepts every text that Go's JSON
// accepts.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u00e9\ud83d\ude00",null,true]}`, `[[[]]]`, `"\`, `-0x1p4`, `{"a"`, `nan(1)`, "\x00"} {
		f.Add(s)
	}
	L := lua.NewState()
	lib := unlimited(L)
	call := func(name string, v lua.LValue) (lua.LValue, error) {
		L.SetTop(0)
		err := L.CallByParam(lua.P{Fn: tables.GetString(lib, name), NRet: 1, Protect: true}, v)
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
	fn := tables.GetString(unlimited(L), "decode")
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
	if err := L.CallByParam(lua.P{Fn: tables.GetString(lib, "decode"), NRet: 1}, lua.LString(document)); err != nil {
		b.Fatal(err)
	}
	value := L.Get(-1)
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if err := L.CallByParam(lua.P{Fn: tables.GetString(lib, "encode"), NRet: 1}, value); err != nil {
			b.Fatal(err)
		}
		L.SetTop(0)
	}
}
