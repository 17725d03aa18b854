package luavm

// Constructors of any length, around the fifty items that are stored at once, and around the largest number of such batches
// that an instruction can hold.

import (
	"fmt"
	"strings"
	"testing"
)

func TestLongConstructors(t *testing.T) {
	vm := New(Config{})
	for _, n := range []int{0, 1, 2, 48, 49, 50, 51, 99, 100, 101, 150, 200, 25549, 25550, 25551, 25600, 25650} {
		items := strings.Repeat("0,", n)
		for _, c := range []struct {
			last  string
			extra int // items that it gives
		}{{"", 0}, {"7", 1}, {"unpack({7, 8, 9})", 3}, {"k = 5", 0}, {"k = 5, unpack({7, 8, 9})", 3}, {"unpack({7, 8, 9}), k = 5", 1}, {"(unpack({7, 8, 9}))", 1}, {"unpack({})", 0}} {
			script := fmt.Sprintf("local t = {%s%s} local n = 0 for i = 1, %d do if t[i] == 0 then n = n + 1 end end return {n, #t, t[%d + 1] or 0, t[%d] or 0}", items, c.last, n, n, n+c.extra)
			first, last := min(c.extra, 1)*7, 0
			if c.extra > 0 {
				last = 6 + c.extra
			}
			want := fmt.Sprintf("*4\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", n, n+c.extra, first, last)
			if got := eval(t, vm, newTestHost(), script, nil, nil); got != want {
				t.Errorf("%d items and %s:\n got %q\nwant %q", n, c.last, got, want)
			}
		}
	}
}
