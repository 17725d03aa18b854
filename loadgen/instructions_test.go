package main

// Parsing valgrind's output for the instructions run, and a check that the benchmarks in its list exist.

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestInstructionsOf(t *testing.T) {
	const output = `==12== Command: ./luavm.test -test.bench ^BenchmarkRun$/^incr$
goos: linux
BenchmarkRun/incr         	     100	    131826 ns/op	     697 B/op	       0 allocs/op
BenchmarkAppendDouble/1.2345e-30         	    4000	       822.3 ns/op
PASS
==12== 
==12== I   refs:      1,008,895,836
`
	for _, name := range []string{"BenchmarkRun/incr", "BenchmarkAppendDouble/1.2345e-30"} {
		if n, err := instructionsOf([]byte(output), name); err != nil || n != 1_008_895_836 {
			t.Error(name, n, err)
		}
	}
	if _, err := instructionsOf([]byte(output), "BenchmarkRun/get"); err == nil {
		t.Error("a benchmark that did not run has instructions")
	}
	if _, err := instructionsOf([]byte(strings.ReplaceAll(output, "refs", "none")), "BenchmarkRun/incr"); err == nil {
		t.Error("valgrind told nothing, and that is well")
	}
}

// A benchmark is counted under valgrind by its name in the output of go test, whatever characters it has.
func TestCount(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("there is no valgrind")
	}
	bin := filepath.Join(t.TempDir(), "test")
	if out, err := exec.Command("go", "test", "-c", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	count := func(name string) int {
		n, err := counted{name: name, bin: bin, dir: ".", benchmark: name, runs: 1000}.count()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	whole, half := count("BenchmarkCounted/1.5e-30_+(1)"), count("BenchmarkCounted/half")
	if half < countedTurns || float64(whole) < 1.9*float64(half) || float64(whole) > 2.1*float64(half) {
		t.Errorf("%d turns take %d instructions, half of them %d", 2*countedTurns, whole, half)
	}
}

const countedTurns = 5000

var spun int

// BenchmarkCounted takes a few instructions a turn, and does nothing else.
func BenchmarkCounted(b *testing.B) {
	for name, turns := range map[string]int{"1.5e-30 +(1)": 2 * countedTurns, "half": countedTurns} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for i := range turns {
					spun ^= i
				}
			}
		})
	}
}
