// Package partialsort, internal to the server, sorts a part of a slice. SORT and GEOSEARCH with a limit sort only what they
// return, with Bentley's and McIlroy's quicksort ("Engineering a sort function", 1993), which here skips the parts that
// nobody asked for. The order of equal elements follows from its steps, which are the same as in Redis.
package partialsort

// Sort uses insertion below insertBelow elements. Above nineAbove elements it chooses the pivot from nine elements instead of
// three.
const (
	insertBelow = 7
	nineAbove   = 40
)

// Sort puts the elements in place that belong at indexes from up to to of the order; the others end up on the right side of
// them.
func Sort[T any](v []T, compare func(a, b *T) int, from, to int) {
	base := 0 // of v in the whole
	for {
		n := len(v)
		if n < insertBelow {
			for i := 1; i < n; i++ {
				for j := i; j > 0 && compare(&v[j-1], &v[j]) > 0; j-- {
					v[j-1], v[j] = v[j], v[j-1]
				}
			}
			return
		}
		p := pivot(v, compare)
		v[0], v[p] = v[p], v[0]
		// Equal to the pivot, which is v[0], are v[:a] and v[d+1:]; between them
		// are the smaller ones, v[a:b], and the larger ones, v[c+1:d+1].
		a, b, c, d := 1, 1, n-1, n-1
		for {
			for ; b <= c; b++ {
				r := compare(&v[b], &v[0])
				if r > 0 {
					break
				}
				if r == 0 {
					v[a], v[b] = v[b], v[a]
					a++
				}
			}
			for ; b <= c; c-- {
				r := compare(&v[c], &v[0])
				if r < 0 {
					break
				}
				if r == 0 {
					v[c], v[d] = v[d], v[c]
					d--
				}
			}
			if b > c {
				break
			}
			v[b], v[c] = v[c], v[b]
			b++
			c--
		}
		// The equal ones go to the middle.
		swapRanges(v, 0, b-min(a, b-a), min(a, b-a))
		swapRanges(v, b, n-min(d-c, n-1-d), min(d-c, n-1-d))
		smaller, larger := b-a, d-c
		if smaller > 1 && from < base+smaller && to > base {
			Sort(v[:smaller], compare, from-base, to-base)
		}
		start := base + n - larger
		if larger <= 1 || to <= start || from >= base+n {
			return
		}
		v, base = v[n-larger:], start
	}
}

func swapRanges[T any](v []T, i, j, n int) {
	for k := range n {
		v[i+k], v[j+k] = v[j+k], v[i+k]
	}
}

// pivot is the index of the element to divide by.
func pivot[T any](v []T, compare func(a, b *T) int) int {
	n := len(v)
	lo, mid, hi := 0, n/2, n-1
	if n == insertBelow {
		return mid
	}
	if n > nineAbove {
		d := n / 8
		lo = median(v, compare, lo, lo+d, lo+2*d)
		mid = median(v, compare, mid-d, mid, mid+d)
		hi = median(v, compare, hi-2*d, hi-d, hi)
	}
	return median(v, compare, lo, mid, hi)
}

// median is which of the three is neither the smallest nor the largest.
func median[T any](v []T, compare func(a, b *T) int, i, j, k int) int {
	if compare(&v[i], &v[j]) < 0 {
		switch {
		case compare(&v[j], &v[k]) < 0:
			return j
		case compare(&v[i], &v[k]) < 0:
			return k
		}
		return i
	}
	switch {
	case compare(&v[j], &v[k]) > 0:
		return j
	case compare(&v[i], &v[k]) < 0:
		return i
	}
	return k
}
