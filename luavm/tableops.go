package luavm

// The instructions on tables. They replace gopher-lua's, since the tables are those of package tables. They raise errors with
// gopher-lua's texts, which translate translates.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/tables"
)

// indirectionsMax is how many tables an index may pass through by way of metatables.
const indirectionsMax = 100

// event is the name of a metamethod and its hash.
type event struct {
	name string
	hash uint32
}

func eventOf(name string) event { return event{name, tables.Hash(name)} }

var indexEvent, newIndexEvent = eventOf("__index"), eventOf("__newindex")

// of returns the metamethod in a table's metatable, nil if there is none.
func (e event) of(t *lua.LTable) lua.LValue {
	mt, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return lua.LNil
	}
	return tables.GetHashed(mt, e.name, e.hash)
}

// index is object[key].
func index(L *lua.LState, object, key lua.LValue) lua.LValue {
	for range indirectionsMax {
		var via lua.LValue
		if t, ok := object.(*lua.LTable); ok {
			if v := tables.Get(t, key); v != lua.LNil {
				return v
			}
			if via = indexEvent.of(t); via == lua.LNil {
				return lua.LNil
			}
		} else if via = L.GetMetaField(object, indexEvent.name); via == lua.LNil {
			L.RaiseError("attempt to index a non-table object(%v) with key '%s'", object.Type().String(), key.String())
		}
		if via.Type() == lua.LTFunction {
			L.Push(via)
			L.Push(object)
			L.Push(key)
			L.Call(2, 1)
			v := L.Get(-1)
			L.Pop(1)
			return v
		}
		object = via
	}
	L.RaiseError("too many recursions in gettable")
	return nil
}

// fieldOf is t[key] if only tables are needed to find it, no functions, else nil.
func fieldOf(t *lua.LTable, key lua.LValue) lua.LValue {
	for range indirectionsMax {
		v := tables.Get(t, key)
		if !tables.IsNil(v) || tables.IsNil(t.Metatable) {
			return v
		}
		switch via := indexEvent.of(t).(type) {
		case *lua.LNilType:
			return v
		case *lua.LTable:
			t = via
		default:
			return nil
		}
	}
	return nil
}

// setIndex is object[key] = v.
func setIndex(L *lua.LState, object, key, v lua.LValue) {
	for range indirectionsMax {
		var via lua.LValue
		if t, ok := object.(*lua.LTable); ok {
			via = newIndexEvent.of(t)
			if via == lua.LNil {
				mustBeKey(L, key)
				tables.Set(t, key, v)
				return
			}
			// Lua makes room for the key even if a metamethod takes the value. Not so here for a metamethod in Go: it protects
			// a read-only table, which would grow with each refused write.
			f, ok := via.(*lua.LFunction)
			hasValue := false
			if ok && f.IsG {
				hasValue = tables.Get(t, key) != lua.LNil
			} else {
				mustBeKey(L, key)
				hasValue = tables.Touch(t, key)
			}
			if hasValue {
				tables.Set(t, key, v)
				return
			}
		} else if via = L.GetMetaField(object, newIndexEvent.name); via == lua.LNil {
			L.RaiseError("attempt to index a non-table object(%v) with key '%s'", object.Type().String(), key.String())
		}
		if via.Type() == lua.LTFunction {
			L.Push(via)
			L.Push(object)
			L.Push(key)
			L.Push(v)
			L.Call(3, 0)
			return
		}
		object = via
	}
	L.RaiseError("too many recursions in settable")
}

func mustBeKey(L *lua.LState, key lua.LValue) {
	switch k := key.(type) {
	case *lua.LNilType:
		L.RaiseError("table index is nil")
	case lua.LNumber:
		if k != k {
			L.RaiseError("table index is NaN")
		}
	}
}

// operand is a register of a frame or a constant.
func operand(L *lua.LState, f *luaFrame, n int) lua.LValue {
	return inside(L).reg.operand(n, f.LocalBase, f.Fn.Proto.Constants)
}

func getGlobal(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	setRegister(L, f, inst.A(), index(L, f.Fn.Env, f.Fn.Proto.Constants[inst.Bx()]))
}

func setGlobal(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	setIndex(L, f.Fn.Env, f.Fn.Proto.Constants[inst.Bx()], register(L, f, inst.A()))
}

func getTable(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	setRegister(L, f, inst.A(), index(L, register(L, f, inst.B()), operand(L, f, inst.C())))
}

func setTable(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	setIndex(L, register(L, f, inst.A()), operand(L, f, inst.B()), operand(L, f, inst.C()))
}

// self executes object:method, whose results are the method and the object.
func self(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	object := register(L, f, inst.B())
	method := index(L, object, operand(L, f, inst.C()))
	setRegister(L, f, inst.A(), method)
	setRegister(L, f, inst.A()+1, object)
}

// newTable makes an empty table with room for the items and fields of its constructor.
func newTable(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	setRegister(L, f, inst.A(), tables.New(bytecode.Size(inst.B()), bytecode.Size(inst.C())))
}

// setList stores the next list items of a constructor.
func setList(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	reg := inside(L).reg
	batch := inst.C()
	if batch == 0 {
		batch = int(f.Fn.Proto.Code[f.Pc])
		f.Pc++
	}
	first := f.LocalBase + inst.A() + 1
	end := first + inst.B()
	if inst.B() == 0 {
		end = reg.top
	}
	tables.Fill(reg.array[first-1].(*lua.LTable), (batch-1)*lua.FieldsPerFlush+1, reg.array[first:end])
}
