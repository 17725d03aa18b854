package packed

import "fmt"

// Repairs are what was wrong with the bytes of a value, and is right in what was made of them, in words.
type Repairs []string

// repairsMax is how many of a value are told.
const repairsMax = 8

// Note notes a repair.
func (r *Repairs) Note(format string, args ...any) {
	if len(*r) < repairsMax {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}
