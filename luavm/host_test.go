package luavm

// The host of the tests: a few commands over maps, enough for every kind of reply.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/resp"
)

type testHost struct {
	strings map[string]string
	hashes  map[string]map[string]string
	out     []byte
	log     []string
	repl    int
}

func newTestHost() *testHost {
	return &testHost{strings: map[string]string{}, hashes: map[string]map[string]string{}, repl: 3}
}

type testCommand struct {
	arity int
	run   func(h *testHost, args [][]byte, w *resp.Writer)
}

var testCommands map[string]*testCommand

func init() {
	testCommands = map[string]*testCommand{
		"get": {2, func(h *testHost, args [][]byte, w *resp.Writer) {
			if _, ok := h.hashes[string(args[1])]; ok {
				w.Error("WRONGTYPE Operation against a key holding the wrong kind of value")
			} else if s, ok := h.strings[string(args[1])]; ok {
				w.BulkString(s)
			} else {
				w.Null()
			}
		}},
		"set": {-3, func(h *testHost, args [][]byte, w *resp.Writer) {
			h.strings[string(args[1])] = string(args[2])
			w.Status("OK")
		}},
		"incr": {2, func(h *testHost, args [][]byte, w *resp.Writer) {
			n, err := strconv.ParseInt(h.strings[string(args[1])], 10, 64)
			if err != nil && h.strings[string(args[1])] != "" {
				w.Error("ERR value is not an integer or out of range")
				return
			}
			h.strings[string(args[1])] = strconv.FormatInt(n+1, 10)
			w.Int(n + 1)
		}},
		"del": {-2, func(h *testHost, args [][]byte, w *resp.Writer) {
			n := 0
			for _, k := range args[1:] {
				if _, ok := h.strings[string(k)]; ok {
					n++
				} else if _, ok := h.hashes[string(k)]; ok {
					n++
				}
				delete(h.strings, string(k))
				delete(h.hashes, string(k))
			}
			w.Int(int64(n))
		}},
		"mget": {-2, func(h *testHost, args [][]byte, w *resp.Writer) {
			w.Array(len(args) - 1)
			for _, k := range args[1:] {
				if s, ok := h.strings[string(k)]; ok {
					w.BulkString(s)
				} else {
					w.Null()
				}
			}
		}},
		"hset": {-4, func(h *testHost, args [][]byte, w *resp.Writer) {
			m := h.hashes[string(args[1])]
			if m == nil {
				m = map[string]string{}
				h.hashes[string(args[1])] = m
			}
			n := 0
			for i := 2; i < len(args); i += 2 {
				if _, ok := m[string(args[i])]; !ok {
					n++
				}
				m[string(args[i])] = string(args[i+1])
			}
			w.Int(int64(n))
		}},
		"hget": {3, func(h *testHost, args [][]byte, w *resp.Writer) {
			if s, ok := h.hashes[string(args[1])][string(args[2])]; ok {
				w.BulkString(s)
			} else {
				w.Null()
			}
		}},
		"hgetall": {2, func(h *testHost, args [][]byte, w *resp.Writer) {
			m := h.hashes[string(args[1])]
			w.Map(len(m))
			for k, v := range m {
				w.BulkString(k)
				w.BulkString(v)
			}
		}},
		"ping": {-1, func(h *testHost, args [][]byte, w *resp.Writer) {
			if len(args) > 1 {
				w.BulkString(string(args[1]))
			} else {
				w.Status("PONG")
			}
		}},
		"echo": {2, func(h *testHost, args [][]byte, w *resp.Writer) { w.BulkString(string(args[1])) }},
		"exists": {-2, func(h *testHost, args [][]byte, w *resp.Writer) {
			n := 0
			for _, k := range args[1:] {
				if _, ok := h.strings[string(k)]; ok {
					n++
				}
			}
			w.Int(int64(n))
		}},
		"expire": {-3, func(h *testHost, args [][]byte, w *resp.Writer) { w.Int(1) }},
		"raw":    {2, func(h *testHost, args [][]byte, w *resp.Writer) { w.Buf = append(w.Buf, args[1]...) }},
		"panic":  {1, func(h *testHost, args [][]byte, w *resp.Writer) { panic("a bug in a command") }},
	}
}

func (h *testHost) Lookup(name []byte) any {
	if c := testCommands[strings.ToLower(string(name))]; c != nil {
		return c
	}
	return nil
}

func (h *testHost) Call(cmd any, args [][]byte, proto int) []byte {
	w := &resp.Writer{Buf: h.out[:0], Proto: proto}
	c, _ := cmd.(*testCommand)
	switch {
	case c == nil:
		w.Error("ERR Unknown Redis command called from script")
	case c.arity > 0 && len(args) != c.arity || len(args) < -c.arity:
		w.Error("ERR Wrong number of args calling Redis command from script")
	default:
		c.run(h, args, w)
	}
	h.out = w.Buf
	return w.Buf
}

func (h *testHost) ACLCheck(args [][]byte) (allowed, known bool) {
	return true, h.Lookup(args[0]) != nil
}

func (h *testHost) Log(level int, message string) {
	h.log = append(h.log, fmt.Sprintf("%d %s", level, message))
}

func (h *testHost) SetRepl(flags int) { h.repl = flags }
