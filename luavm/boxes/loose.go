package boxes

// Numbers without boxes. A loop that adds makes a number for each turn, and a box for each number was most of what it
// cost. What functions in Lua compute is therefore kept beside the registers: each register of the stack has a place for a
// number, and a register that holds such a number points to its own place, which the next number that is put into the same
// register overwrites.
//
// So the number must not be seen from elsewhere: to move it is to move the number, not the pointer, and before anybody
// else may look at registers, they get boxes (see Settle).

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Loose has the places of the registers of a stack. The zero value has none.
type Loose struct{ places []lua.LNumber }

// Fit makes a place for each of n registers. What points to a place that was there before has a box from then on.
func (l *Loose) Fit(n int) {
	if len(l.places) != n {
		l.places = make([]lua.LNumber, n)
	}
}

// Size is how many registers have a place.
func (l *Loose) Size() int { return len(l.places) }

// At is the place of a register.
func (l *Loose) At(i int) *lua.LNumber { return &l.places[i] }

// From is the address of the place of a register, and those of the registers above it stand behind it.
func (l *Loose) From(i int) unsafe.Pointer { return unsafe.Pointer(&l.places[i]) }

// Has tells whether a register holds a number without a box. place is its own.
func Has(r *lua.LValue, place *lua.LNumber) bool {
	return (*boxed)(unsafe.Pointer(r)).value == unsafe.Pointer(place)
}

// IsNumber tells whether a value is a number. It takes an address, and Float the number that is there, since to ask for both
// at once makes the compiler look at the kind twice.
func IsNumber(v *lua.LValue) bool {
	_, is := (*v).(lua.LNumber)
	return is
}

// Float is what IsNumber has found.
func Float(v *lua.LValue) float64 { return *(*float64)((*boxed)(unsafe.Pointer(v)).value) }

// Put gives a register a number. place is its own.
func Put(r *lua.LValue, place *lua.LNumber, f float64) {
	*place = lua.LNumber(f)
	if !Has(r, place) {
		*(*boxed)(unsafe.Pointer(r)) = boxed{numberKind, unsafe.Pointer(place)}
	}
}

// Settle gives boxes to all numbers in registers, of which the first is number i, that have none.
func (l *Loose) Settle(registers []lua.LValue, i int, from *Boxes) {
	places := l.places[i : i+len(registers)]
	for j := range registers {
		if r := &registers[j]; Has(r, &places[j]) {
			*r = from.Number(float64(places[j]))
		}
	}
}
