package luavm

// The host of the tests: a few commands over maps, and a writer of replies. Enough to see every kind of reply.

import (
	"fmt"
	"strconv"
	"strings"
)

type testHost struct {
	strings map[string]string
	hashes  map[string]map[string]string
	out     []byte
	log     []string
	repl    int
	loud    bool // panic in the next command
}

func newTestHost() *testHost {
	return &testHost{strings: map[string]string{}, hashes: map[string]map[string]string{}, repl: 3}
}

type testCommand struct {
	arity int
	run   func(h *testHost, args [][]byte, w *testWriter)
}

var testCommands map[string]*testCommand

func init() {
	testCommands = map[string]*testCommand{
		"get": {2, func(h *testHost, args [][]byte, w *testWriter) {
			if _, ok := h.hashes[string(args[1])]; ok {
				w.Error("WRONGTYPE Operation against a key holding the wrong kind of value")
			} else if s, ok := h.strings[string(args[1])]; ok {
				w.BulkString(s)
			} else {
				w.Null()
			}
		}},
		"set": {-3, func(h *testHost, args [][]byte, w *testWriter) {
			h.strings[string(args[1])] = string(args[2])
			w.Status("OK")
		}},
		"incr": {2, func(h *testHost, args [][]byte, w *testWriter) {
			n, err := strconv.ParseInt(h.strings[string(args[1])], 10, 64)
			if err != nil && h.strings[string(args[1])] != "" {
				w.Error("ERR value is not an integer or out of range")
				return
			}
			h.strings[string(args[1])] = strconv.FormatInt(n+1, 10)
			w.Int(n + 1)
		}},
		"del": {-2, func(h *testHost, args [][]byte, w *testWriter) {
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
		"mget": {-2, func(h *testHost, args [][]byte, w *testWriter) {
			w.Array(len(args) - 1)
			for _, k := range args[1:] {
				if s, ok := h.strings[string(k)]; ok {
					w.BulkString(s)
				} else {
					w.Null()
				}
			}
		}},
		"hset": {-4, func(h *testHost, args [][]byte, w *testWriter) {
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
		"hget": {3, func(h *testHost, args [][]byte, w *testWriter) {
			if s, ok := h.hashes[string(args[1])][string(args[2])]; ok {
				w.BulkString(s)
			} else {
				w.Null()
			}
		}},
		"hgetall": {2, func(h *testHost, args [][]byte, w *testWriter) {
			m := h.hashes[string(args[1])]
			w.Map(len(m))
			for k, v := range m {
				w.BulkString(k)
				w.BulkString(v)
			}
		}},
		"ping": {-1, func(h *testHost, args [][]byte, w *testWriter) {
			if len(args) > 1 {
				w.BulkString(string(args[1]))
			} else {
				w.Status("PONG")
			}
		}},
		"echo": {2, func(h *testHost, args [][]byte, w *testWriter) { w.BulkString(string(args[1])) }},
		"exists": {-2, func(h *testHost, args [][]byte, w *testWriter) {
			n := 0
			for _, k := range args[1:] {
				if _, ok := h.strings[string(k)]; ok {
					n++
				}
			}
			w.Int(int64(n))
		}},
		"expire": {-3, func(h *testHost, args [][]byte, w *testWriter) { w.Int(1) }},
		"raw":    {2, func(h *testHost, args [][]byte, w *testWriter) { w.buf = append(w.buf, args[1]...) }},
		"panic":  {1, func(h *testHost, args [][]byte, w *testWriter) { panic("a bug in a command") }},
	}
}

func (h *testHost) Lookup(name []byte) any {
	if c := testCommands[strings.ToLower(string(name))]; c != nil {
		return c
	}
	return nil
}

func (h *testHost) Call(cmd any, args [][]byte, proto int) []byte {
	w := &testWriter{buf: h.out[:0], proto: proto}
	c, _ := cmd.(*testCommand)
	switch {
	case c == nil:
		w.Error("ERR Unknown Redis command called from script")
	case c.arity > 0 && len(args) != c.arity || len(args) < -c.arity:
		w.Error("ERR Wrong number of args calling Redis command from script")
	default:
		c.run(h, args, w)
	}
	h.out = w.buf
	return w.buf
}

func (h *testHost) ACLCheck(args [][]byte) (allowed, known bool) {
	return true, h.Lookup(args[0]) != nil
}

func (h *testHost) Log(level int, message string) {
	h.log = append(h.log, fmt.Sprintf("%d %s", level, message))
}

func (h *testHost) SetRepl(flags int) { h.repl = flags }

// testWriter is resp.Writer in small.
type testWriter struct {
	buf   []byte
	proto int
}

func (w *testWriter) add(format string, args ...any) { w.buf = fmt.Appendf(w.buf, format, args...) }

func (w *testWriter) Int(n int64) {
	w.buf = append(strconv.AppendInt(append(w.buf, ':'), n, 10), "\r\n"...)
}
func (w *testWriter) BulkString(s string) { w.add("$%d\r\n%s\r\n", len(s), s) }
func (w *testWriter) Status(s string)     { w.buf = append(append(append(w.buf, '+'), s...), "\r\n"...) }
func (w *testWriter) Error(s string)      { w.add("-%s\r\n", s) }
func (w *testWriter) Array(n int)         { w.add("*%d\r\n", n) }

func (w *testWriter) Null() {
	if w.proto == 3 {
		w.add("_\r\n")
	} else {
		w.add("$-1\r\n")
	}
}

func (w *testWriter) Bool(v bool) {
	switch {
	case w.proto == 3 && v:
		w.add("#t\r\n")
	case w.proto == 3:
		w.add("#f\r\n")
	case v:
		w.Int(1)
	default:
		w.Int(0)
	}
}

func (w *testWriter) Map(n int) {
	if w.proto == 3 {
		w.add("%%%d\r\n", n)
	} else {
		w.Array(2 * n)
	}
}

func (w *testWriter) Set(n int) {
	if w.proto == 3 {
		w.add("~%d\r\n", n)
	} else {
		w.Array(n)
	}
}

func (w *testWriter) Double(f float64) {
	s := string(appendArgument(nil, f))
	if w.proto == 3 {
		w.add(",%s\r\n", s)
	} else {
		w.BulkString(s)
	}
}

func (w *testWriter) BigNumber(s string) {
	if w.proto == 3 {
		w.add("(%s\r\n", s)
	} else {
		w.BulkString(s)
	}
}

func (w *testWriter) Verbatim(format, s string) {
	if w.proto == 3 {
		w.add("=%d\r\n%s:%s\r\n", len(s)+4, (format + "   ")[:3], s)
	} else {
		w.BulkString(s)
	}
}
