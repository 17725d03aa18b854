package partialsort

// Sorting a whole slice, with equal elements in their order.

import (
	"cmp"
	"slices"
)

// Stable sorts all of v; equal elements stay in their order. It sorts indexes, and moves the elements once at the end:
// elements are large, and contain pointers.
func Stable[T any](v []T, compare func(a, b *T) int) {
	order := make([]int32, len(v))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		if c := compare(&v[i], &v[j]); c != 0 {
			return c
		}
		return cmp.Compare(i, j)
	})
	for i := range order {
		first, at := v[i], int32(i)
		for order[at] != int32(i) { // the element that belongs at the free place moves there
			from := order[at]
			v[at], order[at] = v[from], at
			at = from
		}
		v[at], order[at] = first, at
	}
}
