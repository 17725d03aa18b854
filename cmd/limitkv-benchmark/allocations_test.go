package main

// What the allocations run makes of the output of go test, and of a baseline.

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
BenchmarkRun/few               	     100	        94.4 ns/op	      24 B/op	       4 allocs/op
BenchmarkRun/fewer             	     100	        94.4 ns/op	      24 B/op	       4 allocs/op
BenchmarkRun/timed-2           	     100	        94.4 ns/op
pkg: github.com/limitkv/limitkv
BenchmarkTop-16                	     100	        94.4 ns/op	      24 B/op	       1 allocs/op
`))
	if err != nil || len(got) != 6 || got["luavm.BenchmarkRun/nothing"] != 0 || got["luavm.BenchmarkRun/much"] != 23 || got[".BenchmarkTop"] != 1 {
		t.Fatal(got, err)
	}
	worse, compared := moreAllocations("luavm.BenchmarkRun/nothing 0\nluavm.BenchmarkRun/much 20\nluavm.BenchmarkRun/more 20\nluavm.BenchmarkRun/few 3\nluavm.BenchmarkRun/fewer 2\n.BenchmarkTop 0\nluavm.BenchmarkGone 3\n", got)
	if compared != 6 || len(worse) != 3 || !strings.HasPrefix(worse[0], "luavm.BenchmarkRun/more: 24") || !strings.HasPrefix(worse[1], "luavm.BenchmarkRun/fewer: 4") || !strings.HasPrefix(worse[2], ".BenchmarkTop: 1") {
		t.Error(worse, compared)
	}
}
