package analysis

// The proofs are compared with what scripts really do: random scripts full of tricks are run, and those that were proven must
// touch only keys in KEYS.

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// writer makes a random script.
type writer struct {
	rand  *rand.Rand
	out   strings.Builder
	depth int
	left  int // statements still to write
	odds  int // one choice in so many is a trick
}

func (w *writer) pick(list ...string) string { return list[w.rand.Intn(len(list))] }

// trick reports whether the next choice is a trick.
func (w *writer) trick() bool { return w.rand.Intn(w.odds) == 0 }

// name is a variable; some hide globals.
func (w *writer) name() string {
	if w.trick() {
		return w.pick("KEYS", "redis", "unpack", "ipairs", "ARGV", "tostring", "assert", "k", "f")
	}
	return w.pick("a", "b", "c")
}

// keyName is a variable that is meant to hold a key.
func (w *writer) keyName() string {
	if w.trick() {
		return w.name()
	}
	return w.pick("k", "k", "k2")
}

// key is an expression that mostly is a key.
func (w *writer) key() string {
	if w.trick() {
		return w.expr()
	}
	switch w.rand.Intn(12) {
	case 0, 1, 2, 3, 4:
		return w.pick("KEYS[1]", "KEYS[2]", "KEYS[#KEYS]", "KEYS[9]", "KEYS['x']")
	case 5, 6, 7:
		return w.keyName()
	case 8:
		return "(" + w.pick("KEYS[9]", "KEYS[1]", w.keyName()) + " or " + w.pick("KEYS[2]", w.keyName()) + ")"
	case 9:
		return "(" + w.test() + " and " + w.pick("KEYS[1]", w.keyName()) + " or " + w.pick("KEYS[2]", w.keyName()) + ")"
	case 10:
		return w.pick("assert(KEYS[1])", "(unpack(KEYS))", "unpack(KEYS, 2)", "f(KEYS[1])", "f(k)", "f()")
	}
	return w.pick("nil", "KEYS[1]")
}

// test is a condition. It is never a constant: gopher-lua compiles those wrongly at the beginning of a loop.
func (w *writer) test() string {
	return w.pick("ARGV[1]", "KEYS[2]", "#KEYS == 2", "not "+w.name(), w.name()+" == ARGV[2]", w.name(), w.keyName())
}

func (w *writer) expr() string {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > 4 {
		return w.pick("1", "'x'", "nil", w.name())
	}
	if w.trick() {
		switch w.rand.Intn(8) {
		case 0:
			return w.pick("KEYS", "redis", "redis.call", "redis['pcall']", "ARGV", "unpack", "ipairs", "f")
		case 1:
			return w.name() + "[" + w.pick("1", "2", "'call'", w.name()) + "]"
		case 2:
			return w.name() + ".call"
		case 3:
			return w.pick("tostring", "tonumber", "type", "select", "next", "pcall", "unpack") + "(" + w.expr() + ")"
		case 4:
			return w.name() + "(" + w.args() + ")"
		case 5:
			return w.pick("pcall(f, ", "pcall(redis.call, 'get', ", "pcall(") + w.key() + ")"
		case 6:
			return "{" + w.expr() + ", " + w.expr() + "}"
		}
		return "(function(" + w.params() + ")\n" + w.block(2) + "return " + w.key() + "\nend)"
	}
	switch w.rand.Intn(10) {
	case 0, 1:
		return w.pick("1", "2", "0", "'x'", "'k1'", "nil", "false", "true", "'get'")
	case 2, 3:
		return w.pick("KEYS[1]", "KEYS[2]", "ARGV[1]", "ARGV[2]", "#KEYS", "#ARGV")
	case 4:
		return w.name()
	case 5:
		return "tostring(" + w.keyName() + ") .. " + w.pick("'x'", "''", "ARGV[1]")
	case 6:
		return w.call()
	case 7:
		return w.test() + w.pick(" and ", " or ", " == ") + w.expr()
	case 8:
		return "{" + w.key() + "}"
	}
	return "not " + w.name()
}

func (w *writer) params() string {
	if w.trick() {
		return w.pick("a, ...", "...", "KEYS", "redis", "call", "f")
	}
	return w.pick("", "k", "k", "k, a")
}

func (w *writer) args() string {
	if w.trick() {
		return w.expr() + ", " + w.key()
	}
	return w.pick("", "KEYS[1]", w.key())
}

// call is a redis.call, or something that may be one.
func (w *writer) call() string {
	fn := w.pick("redis.call", "redis.call", "redis.pcall", "redis['call']", "call")
	if w.trick() {
		fn = w.pick("redis", "f", "a.call", "t.call", "redis.log", "k")
	}
	k := w.key()
	switch w.rand.Intn(9) {
	case 0:
		return fn + "('mset', " + k + ", 'v', " + w.key() + ", 'v')"
	case 1:
		return fn + "('del', " + k + ", " + w.key() + ")"
	case 2:
		n := w.pick("1", "2", "'1'", "#KEYS")
		if w.trick() {
			n = w.pick("a", "ARGV[1]", "3", "0")
		}
		return fn + "('zunionstore', " + k + ", " + n + ", " + w.key() + ", " + w.key() + ")"
	case 3:
		return fn + "('bitop', 'and', " + k + ", " + w.key() + ")"
	case 4:
		name := w.pick("'GET'", "KEYS[1] and 'get' or 'del'")
		if w.trick() {
			name = w.expr()
		}
		return fn + "(" + name + ", " + k + ")"
	case 5:
		return fn + "('xread', 'STREAMS', " + k + ", " + w.pick("0", "'x'", "ARGV[1]") + ")"
	case 6:
		list := w.pick("unpack(KEYS)", "unpack(KEYS, 2)", "f()", "f(KEYS[2])")
		if w.trick() {
			list = w.pick("...", "unpack(t)", "unpack(a)")
		}
		return fn + "('del', " + list + ")"
	case 7:
		return fn + "('hset', " + k + ", 'f', tostring(" + w.expr() + "))"
	}
	return fn + "('get', " + k + ")"
}

func (w *writer) block(n int) string {
	var b strings.Builder
	w.depth++
	for i := w.rand.Intn(n + 1); i > 0; i-- {
		b.WriteString(w.stmt())
	}
	w.depth--
	return b.String()
}

func (w *writer) stmt() string {
	if w.left--; w.left < 0 || w.depth > 5 {
		return "local c = 1\n"
	}
	if w.trick() {
		switch w.rand.Intn(8) {
		case 0:
			return "local " + w.name() + ", " + w.name() + " = " + w.key() + ", " + w.expr() + "\n"
		case 1:
			return w.name() + ", " + w.keyName() + " = " + w.expr() + ", " + w.key() + "\n"
		case 2:
			return w.pick(w.name(), "KEYS", "t") + w.pick("[1]", ".x", "[#KEYS]") + " = " + w.expr() + "\n"
		case 3:
			return "for " + w.pick("_, a", "KEYS, k", "i, redis", "k") + " in " + w.pick("ipairs(KEYS)", "pairs(t)", "ipairs("+w.name()+")") + " do\n" + w.block(3) + "end\n"
		case 4:
			return "local function " + w.name() + "(" + w.params() + ")\n" + w.block(3) + "return " + w.expr() + "\nend\n"
		case 5:
			return w.pick("f", "call", "pcall", "table.insert") + "(" + w.args() + ")\n"
		case 6:
			return "local call = " + w.pick("redis.pcall", "redis", "f", w.expr()) + "\n"
		}
		return w.keyName() + " = " + w.expr() + "\n"
	}
	switch w.rand.Intn(16) {
	case 0, 1, 2:
		return "local " + w.keyName() + " = " + w.key() + "\n"
	case 3:
		return "local k, a = " + w.key() + ", " + w.expr() + "\n"
	case 4:
		return "local " + w.name() + " = " + w.expr() + "\n"
	case 5, 6:
		return w.keyName() + " = " + w.key() + "\n"
	case 7:
		return "if " + w.test() + " then\n" + w.block(2) + "else\n" + w.block(2) + "end\n"
	case 8:
		return "for i, k in " + w.pick("ipairs(KEYS)", "pairs(KEYS)") + " do\n" + w.block(3) + "end\n"
	case 9:
		return "for i = 1, " + w.pick("#KEYS", "2", "#ARGV") + " do\n" + w.block(3) + "end\n"
	case 10:
		return "local function f(" + w.params() + ")\n" + w.block(3) + "return " + w.key() + "\nend\n"
	case 11:
		return "do\n" + w.block(3) + "end\n"
	case 12:
		return "local t = {" + w.key() + "}\n"
	}
	return "local a = " + w.call() + "\n"
}

// script makes the random script of a seed. All names are there from the start, so that it is not over at once.
func script(seed int64) string {
	w := &writer{rand: rand.New(rand.NewSource(seed)), left: 25}
	w.odds = []int{1 << 30, 40, 15, 6, 3}[w.rand.Intn(5)]
	w.out.WriteString("local k, k2, a, b, c, t = KEYS[1], KEYS[2], 1, 'x', ARGV[2], {'x'}\nlocal call = redis.call\nlocal function f(k) return k end\n")
	for i := 2 + w.rand.Intn(8); i > 0; i-- {
		w.out.WriteString(w.stmt())
	}
	return w.out.String()
}

// runner runs scripts with a redis.call that notes the keys.
type runner struct {
	touched []string
	calls   int
}

func (r *runner) call(L *lua.LState) int {
	r.calls++
	var args []Arg
	for i := 1; i <= L.GetTop(); i++ {
		switch v := L.Get(i).(type) {
		case lua.LString, lua.LNumber:
			args = append(args, Arg{Const: true, Value: v.String()})
		default:
			L.RaiseError("arguments must be strings or integers")
		}
	}
	if len(args) == 0 {
		L.RaiseError("at least one argument")
	}
	specs, ok := testSpecs[strings.ToLower(args[0].Value)]
	if !ok {
		L.RaiseError("unknown command")
	}
	for _, s := range specs {
		var keys Keys
		s.Find(args, &keys)
		for _, i := range keys.At {
			if i < len(args) {
				r.touched = append(r.touched, args[i].Value)
			}
		}
	}
	t := L.NewTable()
	t.Append(lua.LString("reply"))
	L.Push(t)
	return 1
}

// run runs a script for a limited time, and reports false if it had to be stopped. Errors of the script do not matter.
func (r *runner) run(script string, limit time.Duration) (ended bool) {
	defer func() {
		if recover() != nil { // panics of gopher-lua are not tested here
			ended = true
		}
	}()
	L := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 100, RegistrySize: 2048, RegistryMaxSize: 1 << 16})
	defer L.Close()
	for name, open := range map[string]lua.LGFunction{"": lua.OpenBase, "table": lua.OpenTable, "string": lua.OpenString} {
		L.Push(L.NewFunction(open))
		L.Push(lua.LString(name))
		L.Call(1, 0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	L.SetContext(ctx)
	redis := L.NewTable()
	redis.RawSetString("call", L.NewFunction(r.call))
	redis.RawSetString("pcall", L.NewFunction(r.call))
	redis.RawSetString("log", L.NewFunction(func(L *lua.LState) int { return 0 }))
	L.SetGlobal("redis", redis)
	keys, args := L.NewTable(), L.NewTable()
	keys.Append(lua.LString("k1"))
	keys.Append(lua.LString("k2"))
	args.Append(lua.LString("v1"))
	args.Append(lua.LString("k2"))
	L.SetGlobal("KEYS", keys)
	L.SetGlobal("ARGV", args)
	r.touched = r.touched[:0]
	err := L.DoString(script)
	return err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// check analyses and runs one script and returns what was found.
func (r *runner) check(t *testing.T, script string) (v Verdict, parsed bool) {
	stmts, err := parse.Parse(strings.NewReader(script), "test")
	if err != nil {
		return v, false
	}
	v = Chunk(stmts, testFinder)
	if !v.KeysProven {
		return v, true
	}
	r.run(script, 20*time.Millisecond)
	for _, k := range r.touched {
		if k != "k1" && k != "k2" {
			t.Fatalf("proven, but touches %q:\n%s", k, script)
		}
	}
	return v, true
}

func TestProofsAreSound(t *testing.T) {
	seed := time.Now().UnixNano()
	n := 4000
	if testing.Short() {
		n = 1000
	}
	t.Logf("seed %d", seed)
	r := &runner{}
	proven, touched, fooled := 0, 0, 0
	for i := 0; i < n; i++ {
		s := script(seed + int64(i))
		before := r.calls
		v, parsed := r.check(t, s)
		if !parsed {
			t.Fatalf("does not parse:\n%s", s)
		}
		if v.KeysProven {
			proven++
			if r.calls > before && len(r.touched) > 0 {
				touched++
			}
		} else if i%2 == 0 && r.run(s, 20*time.Millisecond) {
			for _, k := range r.touched {
				if k != "k1" && k != "k2" {
					fooled++ // it was right not to prove it
					break
				}
			}
		}
	}
	t.Logf("of %d scripts %d proven, %d of them touched keys; %d unproven touched other keys", n, proven, touched, fooled)
	if proven < n/10 || touched < n/20 || fooled < n/200 {
		t.Error("too few scripts put the proofs to the test")
	}
}

// FuzzChunk: whatever parses is analysed without a panic, and proofs hold.
func FuzzChunk(f *testing.F) {
	for seed := int64(0); seed < 50; seed++ {
		f.Add(script(seed))
	}
	f.Add("local t = {} for i, v in ipairs(t) do t[i + 1] = v end")
	f.Add("for i = 1, 10, 1e-300 do end")
	r := &runner{}
	f.Fuzz(func(t *testing.T, s string) {
		// Not what would take all memory, read files or print.
		for _, word := range []string{"rep", "file", "print", "require", "module"} {
			if len(s) > 4000 || strings.Contains(s, word) {
				return
			}
		}
		r.check(t, s)
	})
}

func BenchmarkChunk(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		text := ""
		for i := 0; i < n; i++ {
			text += "do local k = KEYS[1] if ARGV[1] == 'x' then k = KEYS[2] end local r = redis.call('zrange', k, 0, tonumber(ARGV[2]))\n" +
				"for i, v in ipairs(r) do redis.call('zrem', k, v .. ':' .. i) end end\n"
		}
		stmts, err := parse.Parse(strings.NewReader(text), "bench")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(2*n, " lines"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Chunk(stmts, testFinder)
			}
		})
	}
}
