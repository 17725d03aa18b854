package str

// The table of LCS against the usual one of lengths, and what it costs.

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// lengths is the usual table, with the length for each pair of prefixes.
func lengths(x, y []byte) [][]int {
	t := [][]int{make([]int, len(y)+1)}
	for i := range x {
		row := make([]int, len(y)+1)
		for j := range y {
			if row[j+1] = max(t[i][j+1], row[j]); x[i] == y[j] {
				row[j+1] = t[i][j] + 1
			}
		}
		t = append(t, row)
	}
	return t
}

func TestLCSTable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(n, letters int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(letters))
		}
		return b
	}
	ups, longest := 0, 0
	for _, n := range []int{0, 1, 2, 63, 64, 65, 127, 128, 129, 300} {
		for _, m := range []int{0, 1, 2, 63, 64, 65, 127, 128, 129, 300} {
			letters := []int{1, 2, 4, 26, 256}[r.IntN(5)]
			x, y := draw(n, letters), draw(m, letters)
			got, want := lcsTable(x, y), lengths(x, y)
			if got.total != want[n][m] {
				t.Fatalf("%d and %d bytes of %d letters: %d, want %d", n, m, letters, got.total, want[n][m])
			}
			longest = max(longest, got.total)
			for i := 1; i <= n; i++ {
				for j := 1; j <= m; j++ {
					if up := want[i-1][j] > want[i][j-1]; x[i-1] != y[j-1] && got.up(i, j) != up {
						t.Fatalf("%d and %d bytes of %d letters: from %d, %d up %v, want %v", n, m, letters, i, j, !up, up)
					} else if up {
						ups++
					}
				}
			}
			common := got.sequence(x, y)
			for _, of := range [][]byte{x, y} {
				for _, c := range common {
					i := bytes.IndexByte(of, c)
					if i < 0 {
						t.Fatalf("%q is no subsequence of %q and %q", common, x, y)
					}
					of = of[i+1:]
				}
			}
		}
	}
	if ups == 0 || longest < 64 {
		t.Fatalf("the test did no work: %d, %d", ups, longest)
	}
}

func BenchmarkLCS(b *testing.B) {
	x, y := bytes.Repeat([]byte("abcdefgh"), 60), bytes.Repeat([]byte("bdfhacge"), 60)
	b.ReportAllocs()
	for b.Loop() {
		lcsTable(x, y).sequence(x, y)
	}
}
