package luavm

// The time of compiling: of each shape at two lengths, which must take the same time per byte, and of small scripts that are
// all different, as when clients paste values into them.

import (
	"fmt"
	"testing"
)

func BenchmarkCompileShapes(b *testing.B) {
	for _, name := range []string{
		"statements", "fields", "indexes", "calls", "method calls", "sum", "items of a call", "items", "string", "known calls",
		"whiles", "equalities", "functions in a row", "elseif", "and",
	} {
		for _, s := range shapes {
			if s.name != name {
				continue
			}
			for _, n := range []int{10_000, 100_000} {
				if s.slow > 0 {
					n /= 4 // otherwise jumps would be too long
				}
				source := []byte(s.source(n))
				b.Run(fmt.Sprintf("%s×%d", name, n), func(b *testing.B) {
					b.SetBytes(int64(len(source)))
					b.ReportAllocs()
					for b.Loop() {
						if _, err := Compile(source); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
	for _, n := range []int{10_000, 100_000} {
		source := []byte(numbered[0].build(n))
		b.Run(fmt.Sprintf("constants×%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(source)))
			for b.Loop() {
				if _, err := Compile(source); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
