package scripting_test

// The limit of a script's memory: a script gets what is below it, and an error above it, which the server survives.

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// hold is a script that holds ARGV[1] strings of a MB each, and then runs long enough to be checked.
const hold = `local t = {} for i = 1, ARGV[1] do t[i] = string.rep('x', 2^20 - 64) .. i end
local n = 0 for i = 1, 3e6 do n = n + i % 7 end return #t`

// run runs a script that may take its time.
func run(t *testing.T, c *livetest.Client, script string) string {
	t.Helper()
	c.Send("EVAL", script, "0")
	got, ok := c.Poll(time.Minute)
	if !ok {
		t.Fatalf("no reply to %s", script)
	}
	return got
}

const noMemory = "not enough memory"

func TestScriptMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "script-memory-max", "64mb")
	runtime.GC()
	if got := run(t, c, strings.ReplaceAll(hold, "ARGV[1]", "52")); got != "52" {
		t.Errorf("just below: %.200s", got)
	}
	for name, script := range map[string]string{
		"just above":          strings.ReplaceAll(hold, "ARGV[1]", "76"),
		"a table that grows":  `local t = {} while true do t[#t + 1] = string.rep('x', 1e5) end`,
		"numbers":             `local t = {} for i = 1, 1e9 do t[i] = i + 0.5 end`,
		"fields":              `local t = {} for i = 1, 1e9 do t['k' .. i] = i end`,
		"one that doubles":    `local s = 'x' while true do s = s .. s end`,
		"one of 10^9":         `return #string.rep('x', 1e9)`,
		"one above the limit": `return #string.rep('x', 65 * 2^20)`,
		"pcall":               `local t = {} while true do pcall(function() while true do t[#t + 1] = string.rep('x', 1e5) end end) end`,
		"pcall that recurses": `local t = {} local function f() t[#t + 1] = string.rep('x', 1e5) pcall(f) f() end while true do pcall(f) end`,
		"xpcall":              `local t = {} local function f() while true do t[#t + 1] = string.rep('x', 1e5) end end while true do xpcall(f, f) end`,
		"a coroutine": `local t = {} local co = coroutine.wrap(function() while true do t[#t + 1] = string.rep('x', 1e5) coroutine.yield() end end)
while true do co() end`,
		"lists": `return #cjson.decode('[' .. string.rep('[],', 1e7) .. '1]')`,
	} {
		runtime.GC() // what the heap and the pools hold before does not count
		runtime.GC()
		if got := run(t, c, script); !strings.Contains(got, noMemory) {
			t.Errorf("%s: %.200s", name, got)
		}
		c.Want("PONG", "PING")
	}
	// Memory that was refused at once was never allocated: the script may continue.
	runtime.GC()
	c.Want("1", "EVAL", `if pcall(string.rep, 'x', 65 * 2^20) then return 0 end return #string.rep('x', 2^20) / 2^20`, "0")
}

// Neither keys nor garbage count as a script's memory, however much there is of them.
func TestScriptMemoryIsItsOwn(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "script-memory-max", "16mb")
	for script, want := range map[string]string{
		`local n = 0 for i = 1, 300 do n = n + #string.rep('x', 2^20) end return n / 2^20`:                            "300",
		`for i = 1, 100 do redis.call('SET', 'k' .. i, string.rep('x', 2^20)) end return redis.call('DBSIZE')`:        "100",
		`local n = 0 for i = 1, 300 do n = n + #string.rep('x', 1e5 * i % 2^20) end return redis.call('DEL', 'none')`: "0",
	} {
		if got := run(t, c, script); got != want {
			t.Errorf("%s: %.200s", script, got)
		}
	}
	// With these keys, too, it may not keep more.
	if got := run(t, c, `local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 2^20) end`); !strings.Contains(got, noMemory) {
		t.Errorf("what it keeps: %.200s", got)
	}
	if got := run(t, c, `local n = 0 for i = 1, 300 do n = n + #redis.call('GET', 'k' .. i % 100 + 1) end return n / 2^20`); got != "300" {
		t.Errorf("what it reads: %.200s", got)
	}
}

// A script that has ended keeps nothing, however it ended: otherwise that would count as the server's when the next one
// begins.
func TestScriptsLeaveNothing(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "script-memory-max", "64mb")
	held := func() int { return int(livetest.HeapBytes() >> 20) }
	before := held()
	for range 2 {
		for name, script := range map[string]string{
			"an error":            `local t = {} while true do t[#t + 1] = string.rep('x', 1e5) end`,
			"pcall that recurses": `local t = {} local function f() t[#t + 1] = string.rep('x', 1e5) pcall(f) f() end while true do pcall(f) end`,
			"an error in a coroutine": `local t = {} local co = coroutine.wrap(function() while true do t[#t + 1] = string.rep('x', 1e5) coroutine.yield() end end)
while true do co() end`,
			"a coroutine that waits": `local co = coroutine.wrap(function() local s = string.rep('x', 5e7) coroutine.yield() return s end) co() return 1`,
			"an iterator":            `for w in string.gmatch(string.rep('x', 5e7), '.') do return w end`,
			"deep calls":             `local function f(n, s) if n == 0 then return #s end local r = f(n - 1, s) return r end return f(1000, string.rep('x', 5e7))`,
		} {
			run(t, c, script)
			c.Want("PONG", "PING")
			if now := held(); now > before+32 {
				t.Errorf("%s: %d MB are held, %d before", name, now, before)
			}
		}
	}
}
