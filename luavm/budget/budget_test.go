// The watch is called as often as it should be, and Charge never panics.

package budget

import "testing"

func TestAsksEverySoManySteps(t *testing.T) {
	asked := 0
	b := Budget{Spent: func() int { asked++; return Steps }}
	b.Use(1) // the zero value asks at once, and begins to count
	if asked != 1 {
		t.Fatalf("asked %d times at the first step", asked)
	}
	for range Steps {
		b.Use(1)
	}
	if asked != 1 {
		t.Errorf("asked %d times after %d steps, want 1", asked, Steps)
	}
	if b.Use(1); asked != 2 {
		t.Errorf("asked %d times after one step more, want 2", asked)
	}
	if b.Charge(1 << 40); asked != 2 {
		t.Error("Charge asked")
	}
	if b.Use(0); asked != 3 {
		t.Error("what was charged was not asked about")
	}
	if b.Bytes(Steps << bytesPerStep); asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	if b.Bytes(1 << bytesPerStep); asked != 4 {
		t.Errorf("asked %d times after as many bytes as go between two questions", asked)
	}
}
