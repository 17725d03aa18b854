package tables

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Each calls fn with all pairs in Lua's order until it returns false. fn may assign nil to fields, and values to fields
// that are there.
func Each(t *lua.LTable, fn func(k, v lua.LValue) bool) {
	arraySize, keys := arrange(t, nil)
	for i := range arraySize {
		array := inside(t).array
		if i >= len(array) {
			break
		}
		if v := array[i]; v != lua.LNil && !fn(lua.LNumber(i+1), v) {
			return
		}
	}
	for _, k := range keys {
		if v := t.RawGet(k); v != lua.LNil && !fn(k, v) {
			return
		}
	}
}

// keysKept is how many keys the memory of a Walker may have room for between runs, for each of its tables.
const keysKept = 1024

// Walker is next: it remembers the order of the tables that are being walked. The zero value is ready.
type Walker struct {
	walks [4]walk // loops seldom nest deeper
	last  int
}

// walk is a table being walked.
type walk struct {
	t         *lua.LTable
	arraySize int
	arrayLen  int
	keyCount  int
	keys      []lua.LValue // behind the array
	at        int          // in keys: where the key is that was given out last
}

// Forget drops what is remembered.
func (w *Walker) Forget() {
	for i := range w.walks {
		if w.walks[i].t != nil {
			keys := w.walks[i].keys
			if cap(keys) > keysKept {
				keys = nil
			}
			clear(keys[:cap(keys)])
			w.walks[i] = walk{keys: keys}
		}
	}
}

func (w *Walker) find(t *lua.LTable) *walk {
	for i := range w.walks {
		if w.walks[i].t == t {
			return &w.walks[i]
		}
	}
	return nil
}

// start begins to walk a table.
func (w *Walker) start(t *lua.LTable) *walk {
	k := w.find(t)
	in := inside(t)
	switch {
	case k == nil:
		w.last = (w.last + 1) % len(w.walks)
		k = &w.walks[w.last]
	case k.keyCount == len(in.keys) && len(in.array) == 0 && k.arrayLen == 0:
		k.at = 0 // nothing has changed that the order depends on: next(t) may ask again and again whether t is empty
		return k
	}
	k.t, k.arrayLen, k.keyCount, k.at = t, len(in.array), len(in.keys), 0
	k.arraySize, k.keys = arrange(t, k.keys)
	return k
}

// Next is lua_next: the pair behind key, or the first if key is nil. k is nil at the end. ok is false if there is no
// such key.
func (w *Walker) Next(t *lua.LTable, key lua.LValue) (k, v lua.LValue, ok bool) {
	in := inside(t)
	if key == lua.LNil {
		return w.from(t, w.start(t), 0)
	}
	k0 := w.find(t)
	n, isNumber := key.(lua.LNumber)
	isIndex := isNumber && n >= 1 && float64(n) == math.Trunc(float64(n))
	if k0 == nil || k0.keyCount != len(in.keys) || k0.arrayLen != len(in.array) {
		k0 = w.start(t)
		if isIndex && int(n) <= len(in.array) && int(n) > k0.arraySize {
			// Fields have gone since the walk began: it goes on through the array as it began.
			k0.arraySize = len(in.array)
		}
	}
	if isIndex && int(n) <= k0.arraySize {
		return w.from(t, k0, int(n))
	}
	if k0.at < len(k0.keys) && k0.keys[k0.at] == key {
		return w.fromKeys(t, k0, k0.at+1)
	}
	for i, other := range k0.keys {
		if other == key {
			return w.fromKeys(t, k0, i+1)
		}
	}
	return nil, nil, false
}

// from goes on in the array.
func (w *Walker) from(t *lua.LTable, k *walk, i int) (lua.LValue, lua.LValue, bool) {
	array := inside(t).array
	for ; i < k.arraySize && i < len(array); i++ {
		if v := array[i]; v != lua.LNil {
			return number(i + 1), v, true
		}
	}
	return w.fromKeys(t, k, 0)
}

// fromKeys goes on in the hash part.
func (w *Walker) fromKeys(t *lua.LTable, k *walk, i int) (lua.LValue, lua.LValue, bool) {
	for ; i < len(k.keys); i++ {
		if v := t.RawGet(k.keys[i]); v != lua.LNil {
			k.at = i
			return k.keys[i], v, true
		}
	}
	return lua.LNil, lua.LNil, true
}

// smallNumbers are boxed in advance.
var smallNumbers = func() (a [256]lua.LValue) {
	for i := range a {
		a[i] = lua.LNumber(i)
	}
	return
}()

func number(i int) lua.LValue {
	if i < len(smallNumbers) {
		return smallNumbers[i]
	}
	return lua.LNumber(i)
}

// EachUnordered is Each in any order, which is quicker. fn must not change the table.
func EachUnordered(t *lua.LTable, fn func(k, v lua.LValue) bool) {
	in := inside(t)
	for i, v := range in.array {
		if v != lua.LNil && !fn(number(i+1), v) {
			return
		}
	}
	for _, k := range in.keys {
		if v := t.RawGetH(k); v != lua.LNil && !fn(k, v) {
			return
		}
	}
}
