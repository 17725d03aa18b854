package boxes

// Numbers without boxes. A loop that adds makes a number in each turn, and a box for each number was most of its cost. So the
// numbers that Lua functions compute are stored beside the registers: each register of the stack has a place for a number. A
// register with such a number points to its own place. The next number in the same register overwrites the place.
//
// So no other pointer to a place may exist. A move copies the number, not the pointer, and before other code reads registers,
// their numbers get boxes (see Settle).

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Loose has the places of the registers of a stack. The zero value has none.
type Loose struct{ places []lua.LNumber }

// Fit makes a place for each of n registers. An old place that a register still points to becomes a box.
func (l *Loose) Fit(n int) {
	if len(l.places) != n {
		l.places = make([]lua.LNumber, n)
	}
}

// Size is how many registers have a place.
func (l *Loose) Size() int { return len(l.places) }

// At is the place of a register.
func (l *Loose) At(i int) *lua.LNumber { return &l.places[i] }

// From is the address of the place of register i; the places of the registers above it follow.
func (l *Loose) From(i int) unsafe.Pointer { return unsafe.Pointer(&l.places[i]) }

// Has tells whether a register holds a number without a box. place is the register's own place.
func Has(r *lua.LValue, place *lua.LNumber) bool {
	return (*boxed)(unsafe.Pointer(r)).value == unsafe.Pointer(place)
}

// IsNumber tells whether a value is a number, and Float reads it. They are two functions that take an address, since Go's type
// assertion for both at once makes the compiler check the kind twice.
func IsNumber(v *lua.LValue) bool {
	_, is := (*v).(lua.LNumber)
	return is
}

// Float returns the number for which IsNumber has returned true.
func Float(v *lua.LValue) float64 { return *(*float64)((*boxed)(unsafe.Pointer(v)).value) }

// Put stores a number in a register. place is the register's own place.
func Put(r *lua.LValue, place *lua.LNumber, f float64) {
	*place = lua.LNumber(f)
	if !Has(r, place) {
		*(*boxed)(unsafe.Pointer(r)) = boxed{numberKind, unsafe.Pointer(place)}
	}
}

// Settle gives boxes to all numbers without a box in registers; the first of these is register i of the stack.
func (l *Loose) Settle(registers []lua.LValue, i int, from *Boxes) {
	places := l.places[i : i+len(registers)]
	for j := range registers {
		if r := &registers[j]; Has(r, &places[j]) {
			*r = from.Number(float64(places[j]))
		}
	}
}
