package tables

// Names of fields in the source of a script. Hashing and comparing the name was most of the cost of t.name. So such a name
// is hashed once, when the script is compiled. In a table that the same script has filled, the key is the same
// pointer, so that the texts need not be compared.

import (
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// field is the value that a name points to: a Lua string, with its hash behind it.
type field struct {
	text  lua.LString
	hash  uint32
	event bool // it may name a metamethod
}

// value is the memory layout of an interface.
type value struct{ kind, of unsafe.Pointer }

var stringKind = func() unsafe.Pointer {
	var v lua.LValue = lua.LString("")
	return (*value)(unsafe.Pointer(&v)).kind
}()

func newField(name string) (v lua.LValue) {
	f := &field{lua.LString(name), hashString(name), strings.HasPrefix(name, "__")}
	*(*value)(unsafe.Pointer(&v)) = value{stringKind, unsafe.Pointer(f)}
	return v
}

// Index is the name of the metamethod that is looked up most often.
var Index = newField("__index")

// Field makes the name of a field, a Lua string that GetField, SetField and the other functions here take.
func Field(name string) lua.LValue {
	if name == "__index" {
		return Index
	}
	return newField(name)
}

func fieldOf(name *lua.LValue) *field { return (*field)((*value)(unsafe.Pointer(name)).of) }

// GetField is t[name] without metamethods, nil if there is none. The name was made by Field.
func GetField(t *lua.LTable, name *lua.LValue) lua.LValue {
	if v := inside(t).findField(fieldOf(name)); v != nil {
		return *v
	}
	return nil
}

// Named is t[name], also by way of metatables whose __index is a table, through at most most tables. It returns Go's nil if a
// function or more tables would be needed to find the field. The name was made by Field.
func Named(t *lua.LTable, name *lua.LValue, most int) lua.LValue {
	f := fieldOf(name)
	for range most {
		in := inside(t)
		if in.size != 0 {
			// The same as findField, which is not called since the calls took two fifths of the time of finding a method
			// through __index.
			n := in.at(int(f.hash & uint32(in.size-1)))
			for {
				key := (*value)(unsafe.Pointer(&n.key))
				if key.of == unsafe.Pointer(f) || n.hash == f.hash && key.kind == stringKind && *(*lua.LString)(key.of) == f.text {
					if n.value != nil {
						return n.value
					}
					break
				}
				if n.next == 0 {
					break
				}
				n = in.at(int(n.next) - 1)
			}
		}
		mt, ok := in.Metatable.(*lua.LTable)
		if !ok {
			return lua.LNil
		}
		via := Near(mt, &Index)
		if via == nil {
			via = inside(mt).findField(fieldOf(&Index))
		}
		if via == nil || *via == nil {
			return lua.LNil
		}
		if t, ok = (*via).(*lua.LTable); !ok {
			return nil
		}
	}
	return nil
}

// Near returns the place of t[name] if it is the first place to look at and its key is the same pointer, as it is when a
// script reads a field that it has written. Otherwise it returns nil; then t[name] may still exist. It is short enough to be
// inlined. The name was made by Field.
func Near(t *lua.LTable, name *lua.LValue) *lua.LValue {
	in, f := (*layout)(unsafe.Pointer(t)), fieldOf(name)
	if in.size == 0 || in.filled != nil {
		return nil
	}
	n := in.at(int(f.hash & uint32(in.size-1)))
	if (*value)(unsafe.Pointer(&n.key)).of != unsafe.Pointer(f) {
		return nil
	}
	return &n.value
}

// IsEvent tells whether a name may be that of a metamethod, which gopher-lua's own map must also have. It was made by Field.
func IsEvent(name *lua.LValue) bool { return fieldOf(name).event }

// SetField is t[name] = v if t[name] has a value already, so that no metamethod applies. Otherwise it returns false and does
// nothing, also for names of metamethods. The name was made by Field.
func SetField(t *lua.LTable, name *lua.LValue, v lua.LValue) bool {
	f := fieldOf(name)
	slot := inside(t).findField(f)
	if slot == nil || *slot == nil || f.event {
		return false
	}
	if IsNil(v) {
		v = nil
	}
	*slot = v
	return true
}

func (in *layout) findField(f *field) *lua.LValue {
	if in.size == 0 {
		return nil
	}
	n := in.at(int(f.hash & uint32(in.size-1)))
	for {
		if n.hash == f.hash {
			key := (*value)(unsafe.Pointer(&n.key))
			if key.of == unsafe.Pointer(f) || key.kind == stringKind && *(*lua.LString)(key.of) == f.text {
				return &n.value
			}
		}
		if n.next == 0 {
			return nil
		}
		n = in.at(int(n.next) - 1)
	}
}
