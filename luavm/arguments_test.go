package luavm

// KEYS and ARGV behave like any other tables, whatever their length and whatever a script does to them.

import (
	"fmt"
	"strconv"
	"testing"
)

func TestManyArguments(t *testing.T) {
	vm := New(Config{})
	for _, n := range []int{1, 2, 31, 32, 33, 32766, 32767, 32768, 32769, 65536, 100_000, 1_000_000} {
		args := make([]string, n)
		for i := range args {
			args[i] = strconv.Itoa(i + 1)
		}
		told := func(count, first, last int) string {
			return fmt.Sprintf("*4\r\n:%d\r\n:%d\r\n$%d\r\n%d\r\n:%d\r\n", count, count, len(strconv.Itoa(last)), last, first)
		}
		for _, c := range []struct{ change, want string }{
			{"", told(n, 1, n)},
			{"ARGV[1] = 'y'", told(n, 0, n)},
			{"table.remove(ARGV, 1)", told(n-1, 2, n)},
			{"ARGV[#ARGV] = nil", told(n-1, 1, n-1)},
			{"table.insert(ARGV, ARGV[#ARGV])", told(n+1, 1, n)},
			{"table.insert(ARGV, 1, '7')", told(n+1, 7, n)},
			{"ARGV[#ARGV + 1] = #ARGV + 1", told(n+1, 1, n+1)},
		} {
			if n < 3 && c.change != "" {
				continue
			}
			script := c.change + " local n = 0 for i in ipairs(ARGV) do n = n + 1 end return {n, #ARGV, tostring(ARGV[n]), tonumber(ARGV[1]) or 0}"
			if got := eval(t, vm, newTestHost(), script, nil, args); got != c.want {
				t.Errorf("%d arguments, %q:\n got %q\nwant %q", n, c.change, got, c.want)
			}
		}
	}
}
