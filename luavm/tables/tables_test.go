package tables

// A table is compared with a map: after any operations, a walk lists each of its pairs once, and # is a border.
// The order of the walk is recorded in luavm/testdata/order.txt, and the generated tests of luavm compare it with a server.

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// operation is one step of a test: a key, and what is assigned to it, 0 being nil.
type operation struct {
	key   lua.LValue
	value int
}

// keyOf makes a key of two numbers, so that keys repeat and are of all kinds.
func keyOf(kind byte, n uint16) lua.LValue {
	switch kind % 8 {
	case 0, 1:
		return lua.LString(fmt.Sprintf("k%d", n%512))
	case 2:
		return lua.LNumber(n%40 + 1)
	case 3:
		return lua.LNumber(n % 300)
	case 4:
		return lua.LNumber(1<<15 - 3 + int(n%6))
	case 5:
		return lua.LNumber(-float64(n%20) / 2)
	case 6:
		return lua.LBool(n%2 == 0)
	}
	return lua.LNumber(math.Ldexp(1+float64(n%8), int(n%60)))
}

// run applies operations to a new table and to a map, and compares now and then.
func run(t *testing.T, items, fields int, steps []operation) (walked int) {
	table := New(items, fields)
	model := map[lua.LValue]int{}
	var w Walker
	for i, s := range steps {
		if s.value == 0 {
			delete(model, s.key)
			Set(table, s.key, lua.LNil)
		} else {
			model[s.key] = s.value
			Set(table, s.key, lua.LNumber(s.value))
		}
		if i%16 == 15 || i == len(steps)-1 {
			walked += check(t, &w, table, model)
		}
	}
	if err := emptied(&w, table, len(model)); err != nil {
		t.Error(err)
	}
	w.Forget()
	return walked
}

// check compares all ways to list a table with what should be in it.
func check(t *testing.T, w *Walker, table *lua.LTable, model map[lua.LValue]int) int {
	t.Helper()
	var order []lua.LValue
	seen := map[lua.LValue]bool{}
	pair := func(k, v lua.LValue) bool {
		if model[k] == 0 || v != lua.LNumber(model[k]) || seen[k] {
			t.Fatalf("%v = %v is listed, want %v, seen before: %v", k, v, model[k], seen[k])
		}
		seen[k] = true
		order = append(order, k)
		return true
	}
	Each(table, pair)
	if len(order) != len(model) {
		t.Fatalf("Each lists %d pairs of %d", len(order), len(model))
	}
	byEach := slices.Clone(order)
	order, seen = nil, map[lua.LValue]bool{}
	var key lua.LValue = lua.LNil
	for {
		k, v, ok := w.Next(table, key)
		if !ok {
			t.Fatalf("Next does not know the key %v that it gave out", key)
		}
		if k == lua.LNil {
			break
		}
		pair(k, v)
		key = k
	}
	if !slices.Equal(order, byEach) {
		t.Fatalf("Next goes %v, Each %v", order, byEach)
	}
	b := Border(table)
	if b > 0 && model[lua.LNumber(b)] == 0 || model[lua.LNumber(b+1)] != 0 {
		t.Fatalf("# is %d, where %d and then %d stand", b, model[lua.LNumber(b)], model[lua.LNumber(b+1)])
	}
	if _, _, ok := w.Next(table, lua.LString("no such key")); ok {
		t.Fatal("Next knows a key that is not there")
	}
	return len(order)
}

// emptied walks a table and assigns nil to each field on the way, which Lua allows.
func emptied(w *Walker, table *lua.LTable, want int) error {
	var key lua.LValue = lua.LNil
	n := 0
	for {
		k, _, ok := w.Next(table, key)
		if !ok {
			return fmt.Errorf("emptying: Next does not know %v", key)
		}
		if k == lua.LNil {
			break
		}
		Set(table, k, lua.LNil)
		key = k
		n++
	}
	if n != want || Border(table) != 0 {
		return fmt.Errorf("emptying a table of %d: %d walked, # is then %d", want, n, Border(table))
	}
	if k, _, ok := w.Next(table, lua.LNil); k != lua.LNil || !ok {
		return fmt.Errorf("an emptied table starts with %v", k)
	}
	return nil
}

func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	walked := 0
	for range 150 {
		steps := make([]operation, r.IntN(300))
		kinds := r.IntN(256) // which kinds of keys occur
		for i := range steps {
			kind := byte(r.IntN(8))
			if kinds>>kind&1 == 0 {
				kind = byte(kinds)
			}
			steps[i] = operation{keyOf(kind, uint16(r.Uint32())), max(0, r.IntN(8)-2)}
		}
		walked += run(t, r.IntN(4), r.IntN(6), steps)
	}
	if walked < 1000 {
		t.Errorf("only %d pairs were walked", walked)
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 3, 0, 1, 0, 1, 2, 7, 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 || len(b) > 4000 {
			return
		}
		items, fields := int(b[0]%8), int(b[1]%8)
		var steps []operation
		for b = b[2:]; len(b) >= 4; b = b[4:] {
			steps = append(steps, operation{keyOf(b[0], binary.LittleEndian.Uint16(b[1:])), int(b[3] % 4)})
		}
		run(t, items, fields, steps)
	})
}

// A key far beyond the others needs no room for those between.
func TestFarKeys(t *testing.T) {
	table := New(0, 0)
	for _, k := range []lua.LNumber{50000000, 1 << 15, 1 << 40} {
		Set(table, k, lua.LTrue)
	}
	if in := inside(table); len(in.array) > 0 || in.size > 4 {
		t.Errorf("it has %d places and %d nodes", len(in.array), in.size)
	}
	if GetInt(table, 50000000) != lua.LTrue || GetInt(table, 1<<15) != lua.LTrue || GetInt(table, 49999999) != lua.LNil {
		t.Error("they are not found")
	}
}

// Tables that gopher-lua fills and our own tables give the same results when they are read.
func TestConverted(t *testing.T) {
	table := lua.NewState(lua.Options{SkipOpenLibs: true}).NewTable()
	table.RawSetInt(1, lua.LTrue)
	table.RawSetInt(3, lua.LFalse)
	table.RawSetString("n", lua.LNumber(3))
	table.RawSetString("gone", lua.LNumber(3))
	table.RawSetString("gone", lua.LNil)
	table.RawSet(lua.LFalse, lua.LNumber(4))
	if GetInt(table, 1) != lua.LTrue || GetInt(table, 2) != lua.LNil || GetInt(table, 3) != lua.LFalse || GetString(table, "n") != lua.LNumber(3) ||
		GetString(table, "gone") != lua.LNil || Get(table, lua.LFalse) != lua.LNumber(4) {
		t.Error("a value is lost")
	}
	n := 0
	Each(table, func(_, _ lua.LValue) bool { n++; return true })
	if n != 4 || Border(table) != 3 {
		t.Errorf("it has %d pairs, # is %d", n, Border(table))
	}
	mt := New(0, 0)
	SetString(mt, "__index", table)
	if mt.RawGetString("__index") != table {
		t.Error("the library does not see a metamethod")
	}
	if SetString(mt, "__index", lua.LNil); mt.RawGetString("__index") != lua.LNil {
		t.Error("the library sees a metamethod that is gone")
	}
}

func TestHash(t *testing.T) {
	for s, want := range map[string]uint32{"": 0, "a": 1 ^ (1<<5 + 1>>2 + 'a')} {
		if got := hashString(s); got != want {
			t.Errorf("hash of %q: %d, want %d", s, got, want)
		}
	}
}

func BenchmarkPairs(b *testing.B) {
	for _, n := range []int{4, 64, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table := New(0, 0)
			for i := range n {
				SetString(table, fmt.Sprint("field", i), lua.LTrue)
			}
			b.ReportAllocs()
			for b.Loop() {
				Each(table, func(_, _ lua.LValue) bool { return true })
			}
		})
	}
}

// Tables that are made as arrays are as if values had been appended to them, and share no memory.
func TestArrays(t *testing.T) {
	var a Arrays
	var all []*lua.LTable
	for n := range 200 {
		table, items := a.New(n % 12)
		for i := range items {
			items[i] = lua.LNumber(n*100 + i)
		}
		like := New(0, 0)
		for i := range items {
			SetInt(like, i+1, items[i])
		}
		if len(inside(table).array) != len(inside(like).array) {
			t.Errorf("room for %d, appended values get room for %d", len(inside(table).array), len(inside(like).array))
		}
		SetInt(table, n%12+1, lua.LString("more")) // must not write over the next one
		SetString(table, "field", lua.LNumber(n))
		all = append(all, table)
	}
	for n, table := range all {
		if Border(table) != n%12+1 || GetString(table, "field") != lua.LNumber(n) || GetInt(table, n%12+1) != lua.LString("more") {
			t.Errorf("table %d has become another", n)
		}
		for i := range n % 12 {
			if GetInt(table, i+1) != lua.LNumber(n*100+i) {
				t.Errorf("table %d: item %d is %v", n, i+1, GetInt(table, i+1))
			}
		}
	}
}

// A reused table is empty, and small.
func TestReset(t *testing.T) {
	for _, n := range []int{0, 3, 64, 65, 5000} {
		table := New(0, 0)
		for i := range n {
			SetInt(table, i+1, lua.LTrue)
		}
		SetString(table, "field", lua.LTrue)
		Reset(table, 64)
		if Border(table) != 0 || GetString(table, "field") != lua.LNil || len(inside(table).array) > 64 {
			t.Errorf("%d values: # is %d, room for %d", n, Border(table), len(inside(table).array))
		}
	}
}

// The cost of each function.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{10, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table := New(0, 0)
				for i := range n {
					SetInt(table, i+1, lua.LTrue)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
		})
	}
}

func BenchmarkFields(b *testing.B) {
	keys := make([]lua.LValue, 8)
	for i := range keys {
		keys[i] = lua.LString(fmt.Sprint("field", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		table := New(0, 0)
		for _, k := range keys {
			Set(table, k, lua.LTrue)
		}
		for _, k := range keys {
			Get(table, k)
		}
	}
}
