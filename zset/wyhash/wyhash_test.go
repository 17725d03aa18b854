// How well the hash mixes, and how long it takes.
package wyhash

import (
	"fmt"
	"math/bits"
	"testing"
)

// Each bit of a key changes about half of the bits of its hash.
func TestSum(t *testing.T) {
	for _, n := range []int{1, 3, 4, 7, 8, 15, 16, 17, 40} {
		key := make([]byte, n)
		for i := range n * 8 {
			changed := 0
			for round := range 64 {
				for j := range key {
					key[j] = byte(j*37 + round*101)
				}
				h := Sum(key)
				key[i/8] ^= 1 << (i % 8)
				changed += bits.OnesCount64(h ^ Sum(key))
			}
			if mean := float64(changed) / 64; mean < 24 || mean > 40 {
				t.Errorf("%d bytes: bit %d changes %.1f bits of 64", n, i, mean)
			}
		}
	}
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{8, 16, 64} {
		key := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Sum(key)
			}
		})
	}
}
