// Package corpus, internal to the server's tests, compares the libraries of scripts with the replies of a real
// Redis 8.0.6 to the same scripts.
//
// A corpus is a text file: a script, a line "----", the reply, an empty line. Tests run each script on gopher-lua with
// the library under test and compare the replies; no Redis is needed. With -recorded-from=host:port the server at that address
// runs the scripts instead, and the file is rewritten with its replies. Only tests import this package.
package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/syntax"
	lua "github.com/yuin/gopher-lua"
)

var record = flag.String("recorded-from", "", "host:port of a Redis 8.0.6 whose replies are to be recorded")

// Case is a script and its reply.
type Case struct {
	Line   int // of the script in the file
	Script string
	Reply  string
}

// Library opens a library in a state.
type Library func(*lua.LState) *lua.LTable

// Run runs every script of the file with the libraries, each under its global name, and compares the replies.
func Run(t *testing.T, file string, libraries map[string]Library) {
	t.Helper()
	RunBy(t, file, func(script string) string { return Eval(script, libraries) })
}

// RunBy is Run with eval to run the scripts, since scripts that make tables need the interpreter of luavm. eval returns the
// reply as Format writes it.
func RunBy(t *testing.T, file string, eval func(script string) string) {
	t.Helper()
	cases, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	if *record != "" {
		if err := recordAll(*record, file, cases); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d replies recorded", len(cases))
		return
	}
	if len(cases) == 0 {
		t.Fatalf("%s has no scripts", file)
	}
	for _, c := range cases {
		if got := eval(c.Script); got != c.Reply {
			t.Errorf("%s:%d\n%s\n  got   %s\n  redis %s", file, c.Line, c.Script, got, c.Reply)
		}
	}
}

// read reads a corpus.
func read(file string) ([]Case, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	var script, reply []string
	start, inReply := 0, false
	flush := func() {
		if len(script) > 0 {
			cases = append(cases, Case{Line: start, Script: strings.Join(script, "\n"), Reply: strings.Join(reply, "\n")})
		}
		script, reply, inReply = nil, nil, false
	}
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "":
			flush()
		case line == "----":
			inReply = true
		case inReply:
			reply = append(reply, line)
		default:
			if len(script) == 0 {
				start = i + 1
			}
			script = append(script, line)
		}
	}
	flush()
	return cases, nil
}

// Eval runs one script with the libraries and returns its reply in the form of the corpus.
func Eval(script string, libraries map[string]Library) (reply string) {
	L := lua.NewState(lua.Options{RegistrySize: 1024, RegistryMaxSize: 1 << 20})
	defer L.Close()
	for name, open := range libraries {
		L.SetGlobal(name, open(L))
	}
	tostring := L.GetGlobal("tostring")
	L.SetGlobal("tostring", L.NewFunction(func(L *lua.LState) int {
		if n, ok := L.Get(1).(lua.LNumber); ok {
			L.Push(lua.LString(arg.FormatNumber(float64(n))))
			return 1
		}
		L.Push(tostring)
		L.Push(L.Get(1))
		L.Call(1, 1)
		return 1
	}))
	L.SetGlobal("tonumber", L.NewFunction(func(L *lua.LState) int {
		if n, ok := arg.ToNumber(L.Get(1)); ok {
			L.Push(lua.LNumber(n))
		} else {
			L.Push(lua.LNil)
		}
		return 1
	}))
	f, _, err := syntax.Compile(script, &syntax.Options{Chunk: "user_script", Name: "user_script"})
	if err != nil {
		return "does not compile: " + err.Error()
	}
	L.Push(L.NewFunctionFromProto(&f.FunctionProto))
	if err := L.PCall(0, 1, nil); err != nil {
		var e *lua.ApiError
		if errors.As(err, &e) {
			return "error " + show(e.Object.String())
		}
		return err.Error()
	}
	return format(L.Get(-1))
}

// format writes the reply that Redis makes of a value.
func format(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return strconv.Quote(string(v))
	case lua.LNumber:
		return strconv.FormatInt(arg.Truncate(float64(v)), 10)
	case lua.LBool:
		if v {
			return "1"
		}
	case *lua.LTable:
		var list []string
		for i := 1; ; i++ {
			e := v.RawGetInt(i)
			if e == lua.LNil {
				break
			}
			list = append(list, format(e))
		}
		return "[" + strings.Join(list, " ") + "]"
	}
	return "nil"
}

// show puts an error on one line, as Redis does.
func show(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

// recordAll asks the server for all replies and writes the file.
func recordAll(address, file string, cases []Case) error {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	call := func(args ...string) (string, error) {
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(args))
		for _, a := range args {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
		}
		if _, err := io.WriteString(conn, b.String()); err != nil {
			return "", err
		}
		return readReply(r)
	}
	var out strings.Builder
	for _, c := range cases {
		if _, err := call("SCRIPT", "FLUSH", "SYNC"); err != nil { // settings of libraries last beyond a script
			return err
		}
		reply, err := call("EVAL", c.Script, "0")
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s\n----\n%s\n\n", c.Script, reply)
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

// where matches the position that Redis adds to the text of an error.
var where = regexp.MustCompile(` script: [0-9a-f]{40}, on .*$`)

// Format converts a reply in wire form to the form of the corpus.
func Format(wire []byte) string {
	reply, err := readReply(bufio.NewReader(bytes.NewReader(wire)))
	if err != nil {
		return err.Error()
	}
	return reply
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch line[0] {
	case '-':
		return "error " + strings.TrimPrefix(where.ReplaceAllString(line[1:], ""), "ERR "), nil
	case '$', '*':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "nil", err
		}
		if line[0] == '$' {
			buf := make([]byte, n+2)
			if _, err := io.ReadFull(r, buf); err != nil {
				return "", err
			}
			return strconv.Quote(string(buf[:n])), nil
		}
		list := make([]string, n)
		for i := range list {
			if list[i], err = readReply(r); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(list, " ") + "]", nil
	case '+':
		return line[1:], nil
	}
	return line[1:], nil
}
