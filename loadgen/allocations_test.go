package main

// Parsing the output of go test for the allocations run.

import (
	"strings"
	"testing"
)

func TestAllocations(t *testing.T) {
	got, err := allocations(strings.NewReader(`goos: linux
pkg: github.com/limitkv/limitkv/luavm
BenchmarkRun/nothing-2         	     100	       794.4 ns/op	      24 B/op	       1 allocs/op
BenchmarkRun/nothing-2         	     100	       704.4 ns/op	      24 B/op	       0 allocs/op
BenchmarkRun/much-2            	     100	        94.4 ns/op	   123 cpu-ns/op	      24 B/op	      23 allocs/op
BenchmarkRun/more              	     100	        94.4 ns/op	      24 B/op	      24 allocs/op
BenchmarkRun/timed-2           	     100	        94.4 ns/op
pkg: github.com/limitkv/limitkv
BenchmarkTop-16                	     100	        94.4 ns/op	      24 B/op	       1 allocs/op
`))
	if err != nil || len(got) != 4 || got["luavm.BenchmarkRun/nothing"] != 0 || got["luavm.BenchmarkRun/much"] != 23 || got["luavm.BenchmarkRun/more"] != 24 || got[".BenchmarkTop"] != 1 {
		t.Fatal(got, err)
	}
}
