package boxes

import (
	"math"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// Numbers do not change when neighbouring registers change or when they get boxes; values with a box stay as they are.
func TestLoose(t *testing.T) {
	var l Loose
	var b Boxes
	regs := make([]lua.LValue, 70)
	l.Fit(len(regs))
	for i := range regs {
		regs[i] = lua.LNil
		Put(&regs[i], l.At(i), float64(i)+0.5)
	}
	regs[3] = lua.LString("x")
	Put(&regs[4], l.At(4), math.Inf(1))
	if Has(&regs[3], l.At(3)) || !Has(&regs[4], l.At(4)) || Has(&regs[5], l.At(6)) {
		t.Error("a string is a number, or a number is none, or that of another register")
	}
	l.Settle(regs[2:60], 2, &b)
	for i := range regs {
		if Has(&regs[i], l.At(i)) != (i < 2 || i >= 60) {
			t.Errorf("register %d has a box: %v", i, !Has(&regs[i], l.At(i)))
		}
	}
	held := regs[65]
	l.Fit(len(regs)) // nothing is new
	if !Has(&regs[65], l.At(65)) {
		t.Error("a number has lost its place")
	}
	l.Fit(len(regs) + 1)
	for i := range l.places {
		l.places[i] = -1
	}
	if held != lua.LNumber(65.5) {
		t.Errorf("what a place held that is none any more has become %v", held)
	}
	for i, v := range regs {
		switch {
		case i == 3 && v != lua.LString("x"), i == 4 && v != lua.LNumber(math.Inf(1)), i != 3 && i != 4 && v != lua.LNumber(float64(i)+0.5):
			t.Errorf("register %d has become %v", i, v)
		}
	}
}
