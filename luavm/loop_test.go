package luavm

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/resp"
)

// countingHost counts the commands that run.
type countingHost struct {
	testHost
	runs  int
	reply string
}

func (h *countingHost) Lookup([]byte) any { return h }

func (h *countingHost) Call(any, [][]byte, int) []byte {
	h.runs++
	return []byte(h.reply)
}

// A command whose error the loop hands on to redis.call has run already and does not run again.
func TestFailedCommandRunsOnce(t *testing.T) {
	for _, script := range []string{
		"redis.call('set', 'k', 'v') return 1",
		"local r = redis.call('set', 'k', 'v') return r",
		"return redis.call('set', 'k', 'v')",
		"local ok, e = pcall(function() local x = redis.call('set', 'k') return x end) return {err = e}",
		"local r = redis.pcall('set', 'k') return r",
	} {
		vm, host := New(Config{}), &countingHost{reply: "-WRONGTYPE of a test\r\n"}
		for run := 1; run <= 3; run++ {
			w := &resp.Writer{Proto: 2}
			s, err := Compile([]byte(script))
			if err != nil {
				t.Fatal(err)
			}
			vm.Run(s, nil, nil, host, w)
			if host.runs != run || !strings.HasPrefix(string(w.Buf), "-WRONGTYPE of a test") {
				t.Errorf("%s\nrun %d: %d commands ran, reply %q", script, run, host.runs, w.Buf)
			}
		}
		// Nothing is left of it: the next command's reply is its own.
		host.reply = ":7\r\n"
		w := &resp.Writer{Proto: 2}
		s, _ := Compile([]byte("local n = redis.call('incr', 'k') return n + 1"))
		if vm.Run(s, nil, nil, host, w); string(w.Buf) != ":8\r\n" {
			t.Errorf("%s\nand then: %q", script, w.Buf)
		}
	}
}

// After a run under a context the loop is ours again.
func TestLoopIsTakenUpAgain(t *testing.T) {
	vm := New(Config{})
	vm.SetContext(context.Background())
	//lint:ignore SA1012 without a context, scripts run in the other loop
	vm.SetContext(nil)
	host := &countingHost{reply: ":1\r\n"}
	s, _ := Compile([]byte("local n = redis.call('incr', 'k') return n"))
	ran := false
	ours := inside(vm.L).mainLoop
	inside(vm.L).mainLoop = func(L *lua.LState, base unsafe.Pointer) { ran = true; ours(L, base) }
	vm.Run(s, nil, nil, host, &resp.Writer{Proto: 2})
	if reflect.ValueOf(ours).Pointer() != reflect.ValueOf(vm.loop).Pointer() || !ran {
		t.Error("another loop runs")
	}
}
