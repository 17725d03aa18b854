package scripting_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// What the cache counts is near to the heap's growth, whatever scripts consist of.
func TestScriptsAreCountedAsTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	for name, body := range map[string]func(i int) string{
		"comment":   func(i int) string { return fmt.Sprintf("--%d%s\nreturn 1", i, strings.Repeat("x", 100_000)) },
		"a literal": func(i int) string { return fmt.Sprintf("return #'%d%s'", i, strings.Repeat("x", 100_000)) },
		"code": func(i int) string {
			return fmt.Sprintf("local a = %d ", i) + strings.Repeat("a = a + redis.call('INCRBY', KEYS[1], a * 7)\n", 1000)
		},
		"functions": func(i int) string {
			return fmt.Sprintf("local a = %d local t = {} ", i) + strings.Repeat("t[#t + 1] = function(x) return x + a end\n", 1000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sized(t, "used_memory_scripts_eval", "SCRIPT", func(c *livetest.Client, i int) { c.Do("SCRIPT", "LOAD", body(i)) })
		})
	}
}

// The same holds for libraries.
func TestLibrariesAreCountedAsTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	for name, body := range map[string]string{
		"comment":   "--" + strings.Repeat("x", 100_000),
		"a literal": "local a = 'NUMBER" + strings.Repeat("x", 100_000) + "'", // equal texts are stored once
		"code":      "local a = 1 local function f() " + strings.Repeat("a = a + redis.call('INCRBY', 'k', a * 7)\n", 1000) + " end",
		"functions": "local t = {} local a = 1 local function f() " + strings.Repeat("t[#t + 1] = function(x) return x + a end\n", 1000) + " end",
	} {
		t.Run(name, func(t *testing.T) {
			sized(t, "used_memory_functions", "FUNCTION", func(c *livetest.Client, i int) {
				c.Want(fmt.Sprintf("l%d", i+1), "FUNCTION", "LOAD", fmt.Sprintf("#!lua name=l%d\n%s\nredis.register_function('f%d', function() return 1 end)", i+1, strings.ReplaceAll(body, "NUMBER", strconv.Itoa(i)), i+1))
			})
		})
	}
}

// sized loads a hundred scripts or libraries, and compares their size in INFO memory with the heap's growth.
func sized(t *testing.T, field, command string, load func(c *livetest.Client, i int)) {
	s := livetest.Start(t)
	c := s.Client()
	counted := func() int64 { return c.InfoInt("memory", field) }
	load(c, -1) // what is made only once exists from now on
	before, had := livetest.HeapBytes(), counted()
	for i := range 100 {
		load(c, i)
	}
	grown, counts := livetest.HeapBytes()-before, counted()-had
	if ratio := float64(counts) / float64(grown); ratio < 0.7 || ratio > 1.4 {
		t.Errorf("the heap grew by %d bytes, %d are counted (%.2f)", grown, counts, ratio)
	}
	c.Want("OK", command, "FLUSH")
	if n := counted(); n != 0 {
		t.Errorf("without any %d bytes are counted", n)
	}
}
