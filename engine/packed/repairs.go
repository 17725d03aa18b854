package packed

import "fmt"

// Repairs describe in words what was wrong with the bytes of a value, and was repaired.
type Repairs []string

// repairsMax is how many repairs of a value are recorded.
const repairsMax = 8

// Note records a repair.
func (r *Repairs) Note(format string, args ...any) {
	if len(*r) < repairsMax {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}
