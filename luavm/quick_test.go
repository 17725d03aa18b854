package luavm

// Quick functions return the same results as the library's functions.

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/resp"
)

func TestQuickly(t *testing.T) {
	values := []string{"0", "-0", "1", "2.5", "-2.5", "3", "33", "-1", "1e15", "2^31", "2^32 + 1", "-2^53", "1/0", "-1/0", "0/0", "-(0/0)", "'abc'", "'7'", "''", "nil", "{}"}
	vm, host := New(Config{}), newTestHost()
	n := 0
	for name := range quickly {
		for _, x := range values {
			for _, y := range append([]string{""}, values...) {
				args := x
				if y != "" {
					args += ", " + y
				}
				script := fmt.Sprintf(
					`local function show(ok, v) if type(v) == 'number' then v = string.format('%%.17g', v) end return tostring(ok) .. ' ' .. tostring(v) end `+
						`local quick = show(pcall(function() local v = %[1]s(%[2]s) return v end)) `+
						`local slow = show(pcall(function() local v, w = %[1]s(%[2]s) return v end)) `+
						`local nested = show(pcall(function() local t = {1, %[1]s(%[2]s)} return t[2] end)) `+
						`return {quick, slow, nested}`, name, args)
				s, err := Compile([]byte(script))
				if err != nil {
					t.Fatal(err)
				}
				w := &resp.Writer{Proto: 2}
				vm.Run(s, nil, nil, host, w)
				items := parseBulks(string(w.Buf))
				if len(items) != 3 || items[0] != items[1] || items[2] != items[1] {
					t.Errorf("%s(%s): %q", name, args, w.Buf)
				}
				n++
			}
		}
	}
	if got := run1(t, "local x = 3.75 local y = math.floor(x) return tostring(y)"); n < 1000 || got != "3" {
		t.Error("too little was called")
	}
}

// parseBulks are the bulk strings of an array.
func parseBulks(reply string) (items []string) {
	var count int
	if _, err := fmt.Sscanf(reply, "*%d\r\n", &count); err != nil {
		return nil
	}
	reply = reply[len(fmt.Sprintf("*%d\r\n", count)):]
	for range count {
		var n int
		if _, err := fmt.Sscanf(reply, "$%d\r\n", &n); err != nil {
			return nil
		}
		reply = reply[len(fmt.Sprintf("$%d\r\n", n)):]
		items, reply = append(items, reply[:n]), reply[n+2:]
	}
	return items
}

// run1 is the text that a script returns.
func run1(t *testing.T, script string) string {
	s, err := Compile([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	w := &resp.Writer{Proto: 2}
	New(Config{}).Run(s, nil, nil, newTestHost(), w)
	items := parseBulks("*1\r\n" + string(w.Buf))
	if len(items) != 1 {
		t.Fatalf("%s: %q", script, w.Buf)
	}
	return items[0]
}
