package luavm

// The library table. sort compares in the order of Lua 5.1, so the order of equal elements is the same too.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/tables"
)

func (vm *VM) tableFunctions() functions {
	return functions{
		"concat": vm.tableConcat, "foreach": vm.tableForeach, "foreachi": vm.tableForeachi, "getn": vm.tableGetn,
		"insert": vm.tableInsert, "maxn": vm.tableMaxn, "remove": vm.tableRemove, "setn": tableSetn, "sort": vm.tableSort,
	}
}

func (vm *VM) tableConcat(L *lua.LState) int {
	separator := arg.OptString(L, 2, "")
	t := vm.tableArg(L, 1)
	from := arg.OptInt(L, 3, 1)
	to := tables.Border(t)
	if !arg.IsNoneOrNil(L, 4) {
		to = arg.Int(L, 4)
	}
	b := vm.scratch[:0]
	for i := from; i <= to; i++ {
		before := len(b)
		switch v := tables.GetInt(t, i).(type) {
		case lua.LString:
			b = append(b, v...)
		case lua.LNumber:
			b = arg.AppendNumber(b, float64(v))
		default:
			arg.Raise(L, "invalid value (%s) at index %d in table for 'concat'", typeName(v), i)
		}
		if i < to {
			b = append(b, separator...)
		}
		vm.budget.Use(1 + (len(b)-before)>>8)
		vm.room(L, len(b))
	}
	vm.pushScratch(L, b)
	return 1
}

// scratchMax is the largest buffer that is stored for the next use.
const scratchMax = 64 << 10

// pushScratch pushes b, which was written to vm.scratch, as a string, and stores the buffer for the next use.
func (vm *VM) pushScratch(L *lua.LState, b []byte) {
	L.Push(vm.boxes.String(b))
	if cap(b) <= scratchMax {
		vm.scratch = b
	}
}

func (vm *VM) tableForeach(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	fn := arg.Function(L, 2)
	var result lua.LValue = lua.LNil
	vm.budget.Use(tables.Size(t) / placesPerStep)
	tables.Each(t, func(k, v lua.LValue) bool {
		vm.budget.Use(1)
		result = vm.callMetamethod(L, fn, k, v)
		return result == lua.LNil
	})
	if result == lua.LNil {
		return 0
	}
	L.Push(result)
	return 1
}

func (vm *VM) tableForeachi(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	fn := arg.Function(L, 2)
	for i, n := 1, tables.Border(t); i <= n; i++ {
		vm.budget.Use(1)
		if r := vm.callMetamethod(L, fn, luaInt(int64(i)), tables.GetInt(t, i)); r != lua.LNil {
			L.Push(r)
			return 1
		}
	}
	return 0
}

func (vm *VM) tableGetn(L *lua.LState) int {
	L.Push(luaInt(int64(tables.Border(vm.tableArg(L, 1)))))
	return 1
}

func (vm *VM) tableMaxn(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	most := lua.LNumber(0)
	vm.budget.Use(tables.Size(t) / placesPerStep)
	tables.Each(t, func(k, _ lua.LValue) bool {
		vm.budget.Use(1)
		if n, ok := k.(lua.LNumber); ok && n > most {
			most = n
		}
		return true
	})
	L.Push(most)
	return 1
}

func tableSetn(L *lua.LState) int {
	arg.Table(L, 1)
	arg.Raise(L, "'setn' is obsolete")
	return 0
}

func (vm *VM) tableInsert(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	end := tables.Border(t) + 1
	pos := end
	switch L.GetTop() {
	case 2:
	case 3:
		pos = arg.Int(L, 2)
		if pos > end {
			end = pos
		}
		vm.writable(L, 1)
		for i := end; i > pos; i-- {
			vm.budget.Use(1)
			tables.SetInt(t, i, tables.GetInt(t, i-1))
		}
	default:
		arg.Raise(L, "wrong number of arguments to 'insert'")
	}
	vm.writable(L, 1)
	tables.SetInt(t, pos, L.Get(L.GetTop()))
	return 0
}

func (vm *VM) tableRemove(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	end := tables.Border(t)
	pos := arg.OptInt(L, 2, end)
	if pos < 1 || pos > end {
		return 0
	}
	vm.writable(L, 1)
	v := tables.GetInt(t, pos)
	for ; pos < end; pos++ {
		vm.budget.Use(1)
		tables.SetInt(t, pos, tables.GetInt(t, pos+1))
	}
	tables.SetInt(t, end, lua.LNil)
	L.Push(v)
	return 1
}

// sorter is a table being sorted.
type sorter struct {
	vm   *VM
	L    *lua.LState
	t    *lua.LTable
	less *lua.LFunction // nil: <
}

func (vm *VM) tableSort(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	s := sorter{vm: vm, L: L, t: t}
	if !arg.IsNoneOrNil(L, 2) {
		s.less = arg.Function(L, 2)
	}
	n := tables.Border(t)
	if n > 1 {
		vm.writable(L, 1)
	}
	s.sort(1, n)
	return 0
}

func (s *sorter) get(i int) lua.LValue    { return tables.GetInt(s.t, i) }
func (s *sorter) set(i int, v lua.LValue) { tables.SetInt(s.t, i, v) }

func (s *sorter) before(a, b lua.LValue) bool {
	s.vm.budget.Use(1)
	if s.less != nil {
		return lua.LVAsBool(s.vm.callMetamethod(s.L, s.less, a, b))
	}
	return s.vm.lessThan(s.L, a, b)
}

// sort sorts the elements from lo to up: quicksort with the median of three as pivot. It recurses into the smaller
// part.
func (s *sorter) sort(lo, up int) {
	for lo < up {
		a, b := s.get(lo), s.get(up)
		if s.before(b, a) {
			s.set(lo, b)
			s.set(up, a)
		}
		if up-lo == 1 {
			return
		}
		mid := (lo + up) / 2
		p, a := s.get(mid), s.get(lo)
		if s.before(p, a) {
			s.set(mid, a)
			s.set(lo, p)
		} else if b := s.get(up); s.before(b, p) {
			s.set(mid, b)
			s.set(up, p)
		}
		if up-lo == 2 {
			return
		}
		mid = s.partition(lo, up, mid)
		if mid-lo < up-mid {
			s.sort(lo, mid-1)
			lo = mid + 1
		} else {
			s.sort(mid+1, up)
			up = mid - 1
		}
	}
}

// partition moves the elements less than the one at mid to the left, and returns the new position of that element.
func (s *sorter) partition(lo, up, mid int) int {
	pivot, last := s.get(mid), s.get(up-1)
	s.set(mid, last)
	s.set(up-1, pivot)
	i, j := lo, up-1
	for {
		var a, b lua.LValue
		for i++; ; i++ {
			if a = s.get(i); !s.before(a, pivot) {
				break
			}
			if i > up {
				arg.Raise(s.L, "invalid order function for sorting")
			}
		}
		for j--; ; j-- {
			if b = s.get(j); !s.before(pivot, b) {
				break
			}
			if j < lo {
				arg.Raise(s.L, "invalid order function for sorting")
			}
		}
		if j < i {
			break
		}
		s.set(i, b)
		s.set(j, a)
	}
	a, b := s.get(up-1), s.get(i)
	s.set(up-1, b)
	s.set(i, a)
	return i
}

// lessThan is a<b for Go functions.
func (vm *VM) lessThan(L *lua.LState, a, b lua.LValue) bool {
	switch x := a.(type) {
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			vm.compares(a, b)
			return x < y
		}
	}
	if a.Type() == b.Type() {
		m := vm.metamethod(a, "__lt")
		if m != lua.LNil && m == vm.metamethod(b, "__lt") {
			return lua.LVAsBool(vm.callMetamethod(L, m, a, b))
		}
	}
	vm.throw(L, lua.LString(compareText(a, b)))
	return false
}
