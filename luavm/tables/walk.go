package tables

import lua "github.com/yuin/gopher-lua"

// Walker implements next: it remembers the place of the key that it returned last. The zero value is ready to use.
type Walker struct {
	Skipped int // how many empty places the last step has passed

	t    *lua.LTable
	node int
}

// Forget drops the remembered place.
func (w *Walker) Forget() { w.t = nil }

// Next is lua_next: it returns the pair after key, or the first one if key is nil. k is nil at the end. ok is false if the
// table has no such key.
func (w *Walker) Next(t *lua.LTable, key lua.LValue) (k, v lua.LValue, ok bool) {
	in := inside(t)
	at := 0
	if key != lua.LNil {
		i, isIndex := in.index(key)
		switch {
		case isIndex:
			at = i
		case w.t == t && w.node < in.size && in.at(w.node).key == key:
			at = len(in.array) + w.node + 1
		default:
			n := in.findNode(key)
			if n < 0 {
				return nil, nil, false
			}
			at = len(in.array) + n + 1
		}
	}
	begin := at
	k, v, at = in.from(at)
	if w.Skipped = at - begin - 1; at == 0 {
		w.Skipped = len(in.array) + in.size - begin
	}
	if at > len(in.array) {
		w.t, w.node = t, at-1-len(in.array)
	}
	return k, v, true
}

// index returns the index of a key in the array; false if it is not in the array.
func (in *layout) index(key lua.LValue) (int, bool) {
	n, ok := key.(lua.LNumber)
	i := int(n)
	return i, ok && uint(i-1) < uint(len(in.array)) && float64(i) == float64(n)
}

// from returns the first pair at or after a place, and the place behind it. Places count through the array and then the nodes.
func (in *layout) from(at int) (k, v lua.LValue, behind int) {
	for ; at < len(in.array); at++ {
		if v := in.array[at]; v != nil {
			return number(at + 1), v, at + 1
		}
	}
	for i := at - len(in.array); i < in.size; i++ {
		if n := in.at(i); n.value != nil {
			return n.key, n.value, len(in.array) + i + 1
		}
	}
	return lua.LNil, lua.LNil, 0
}

// Size is how many places a table has, including empty ones: the cost of a walk.
func Size(t *lua.LTable) int {
	in := inside(t)
	return len(in.array) + in.size
}

// Each calls fn with all pairs in Lua's order until it returns false. fn may assign to existing fields, also nil.
func Each(t *lua.LTable, fn func(k, v lua.LValue) bool) {
	in := inside(t)
	for k, v, at := in.from(0); at > 0 && fn(k, v); {
		k, v, at = in.from(at)
	}
}

// smallNumbers are boxed in advance.
var smallNumbers = func() (a [256]lua.LValue) {
	for i := range a {
		a[i] = lua.LNumber(i)
	}
	return
}()

func number(i int) lua.LValue {
	if uint(i) < uint(len(smallNumbers)) {
		return smallNumbers[i]
	}
	return lua.LNumber(i)
}
