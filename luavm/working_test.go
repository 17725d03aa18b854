package luavm

// Generated programs without early errors: each variable has a type, so the programs run to their end and compute much, while
// those of TestGeneratedPrograms meet an error early. They use what the main loop executes in place: numbers in registers, calls,
// methods, closures, tables that grow, caught errors, coroutines.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// worker writes programs that end. Names are visible by their type.
type worker struct {
	*rand.Rand
	b                                 strings.Builder
	nums, strs, lists, objects, funcs []string
	names, depth                      int
	inLoop, vararg, inThread          bool
}

func (w *worker) of(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	if w.IntN(2) == 0 { // the newest are used most
		return list[len(list)-1-w.IntN(min(3, len(list)))]
	}
	return list[w.IntN(len(list))]
}

func (w *worker) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *worker) fresh(kind string) string {
	w.names++
	return fmt.Sprintf("%s%d", kind, w.names)
}

func (w *worker) line(format string, args ...any) {
	w.b.WriteString(strings.Repeat(" ", w.depth))
	fmt.Fprintf(&w.b, format+"\n", args...)
}

// num is an expression whose value is a number.
func (w *worker) num(deep int) string {
	if deep <= 0 {
		return w.pick(w.of(w.nums, "7"), w.of(w.nums, "0.5"), fmt.Sprint(w.IntN(10)), fmt.Sprint(w.IntN(100000)), "-3", "1.5", "65536", "2^31")
	}
	a, b := w.num(deep-1), w.num(deep-1)
	switch w.IntN(20) {
	case 0, 1, 2:
		return "(" + a + " + " + b + ")"
	case 3:
		return "(" + a + " - " + b + ")"
	case 4:
		return "(" + a + " * " + w.pick("2", "3", "-1", "0.25") + ")"
	case 5:
		return "(" + a + " % " + w.pick("7", "3", "1.5", "-4", "1000") + ")"
	case 6:
		return "(" + a + " / " + w.pick("2", "4", "-8") + ")"
	case 7:
		return "-(" + a + ")"
	case 8:
		return "#" + w.of(w.strs, "'four'")
	case 9:
		return "#" + w.of(w.lists, "({1, 2})")
	case 10:
		return "(" + w.of(w.lists, "({5})") + "[" + w.pick("1", "2", "#"+w.of(w.lists, "({})"), a) + "] or " + b + ")"
	case 11, 12:
		if o := w.of(w.objects, ""); o != "" {
			return w.pick(o+".x", o+".y", o+":get()", o+":add("+a+"):get()", o+"["+w.pick("'x'", "'y'")+"]", o+":sum("+a+", "+b+")", "(-"+o+").x", "("+o+" + "+a+").y", o+"("+a+")", "(tonumber("+o+".none) or "+b+")")
		}
	case 13, 14, 15:
		if f := w.of(w.funcs, ""); f != "" && w.depth < 5 {
			return w.pick(f+"("+a+", "+b+")", "("+f+"("+a+"))", "select('#', "+f+"("+a+", "+b+"))", "math.max("+f+"("+a+", "+b+", 1))")
		}
	case 16:
		return w.pick("math.floor("+a+")", "math.max("+a+", "+b+")", "math.min("+a+", "+b+", 3)", "math.abs("+a+")", "tonumber(tostring("+a+"))", "string.byte("+w.str(deep-1)+" .. 'x')", "bit.band("+a+", 255)")
	case 17:
		return "(" + w.cond(deep-1) + " and " + a + " or " + b + ")"
	case 18:
		if w.vararg {
			return w.pick("select('#', ...)", "((...) or "+a+")", "(select(2, ..., 5) or "+b+")")
		}
	}
	return a
}

func (w *worker) str(deep int) string {
	if deep <= 0 {
		return w.pick(w.of(w.strs, "'s'"), "'abc'", "''", "'10'", "'x y z'", "'key='")
	}
	s, n := w.str(deep-1), w.num(deep-1)
	return w.pick(s, s, "("+s+" .. "+w.str(deep-1)+")", "("+s+" .. "+n+" .. "+s+")", "tostring("+n+")", "string.sub("+s+", 2)", "("+s+"):sub("+w.pick("1", "2", "-2")+", "+w.pick("3", "-1")+")",
		"("+s+"):upper()", "string.rep("+s+", 2)", "("+s+"):gsub('%w', "+w.pick("'<%0>'", "{a = 'A', b = 1}", "function(c) return c == 'a' and c .. c end")+")", "string.format('%s|%5.1f|%d', "+s+", "+n+", "+n+" % 100000)",
		"table.concat("+w.of(w.lists, "({1, 2})")+", ',')", "(("+s+"):match('(%w+)') or 'none')", "("+s+"):reverse()", "type("+w.of(w.objects, "nil")+")", "tostring("+w.of(w.objects, "true")+")", "("+w.of(w.objects, "'o'")+" .. "+s+")")
}

func (w *worker) cond(deep int) string {
	a, b := w.num(deep-1), w.num(deep-1)
	s, t := w.str(deep-1), w.str(deep-1)
	o, p := w.of(w.objects, "A"), w.of(w.objects, "A")
	return w.pick(a+" < "+b, a+" <= "+b, a+" == "+b, a+" ~= "+b, a+" > "+b, a+" >= "+b, s+" < "+t, s+" == "+t, "not ("+a+" < "+b+")", "("+a+" < "+b+" and "+s+" ~= "+t+")", "("+a+" < "+b+" or "+s+" <= "+t+")",
		o+" == "+p, o+" < "+p, o+" <= "+p, w.of(w.lists, "({})")+"["+a+"]", "string.find("+s+", "+w.pick("'a'", "'%d'", "'.', 1, true")+")")
}

// wrong is an expression that raises an error.
func (w *worker) wrong() string {
	n := w.of(w.nums, "1")
	return w.pick("nothing.x", "("+n+").x.y", "("+n+")()", "{} + 1", "nothing"+w.fresh("z")+"()", "1 .. {}", "{} < {}", n+" < 'x'", "#"+n, "-{}", "error('plain')", "error('level', 2)", "error('none', 0)", "error({"+n+"})", "error()", "error(nil)",
		"error("+n+")", "string.rep()", "('x'):nomethod()", "setmetatable(1, {})", "redis.call('nosuchcommand')", "redis.call('set', 'k')", "string.format('%d', 'x')", "("+w.of(w.objects, "nothing")+").none.none", "tostring()",
		"ipairs()", "table.concat({{}})", "table.sort({3, 1, 'x'})", "error({err = 'ERR of its own'})", "next({}, 'x')", w.of(w.lists, "nothing")+":push(1)", "cjson.decode('{')", "(nil)[1]", "({})[nil].x", "redis.pcall('nosuch').err.x.y")
}

func (w *worker) block(n int) {
	a, b, c, d, e := len(w.nums), len(w.strs), len(w.lists), len(w.objects), len(w.funcs)
	w.depth++
	for range w.IntN(n) + 1 {
		w.stmt()
	}
	w.depth--
	w.nums, w.strs, w.lists, w.objects, w.funcs = w.nums[:a], w.strs[:b], w.lists[:c], w.objects[:d], w.funcs[:e]
}

// loop is a block in which a variable is visible.
func (w *worker) loop(n int, variables ...string) {
	was, nums := w.inLoop, len(w.nums)
	w.inLoop = true
	w.nums = append(w.nums, variables...)
	w.line(spend)
	w.block(n)
	w.inLoop, w.nums = was, w.nums[:nums]
}

// body is the block of a function.
func (w *worker) body(n int, vararg, inThread bool, params ...string) {
	loop, dots, thread, nums := w.inLoop, w.vararg, w.inThread, len(w.nums)
	w.inLoop, w.vararg, w.inThread = false, vararg, inThread
	w.nums = append(w.nums, params...)
	w.line(spend)
	w.block(n)
	w.inLoop, w.vararg, w.inThread, w.nums = loop, dots, thread, w.nums[:nums]
}

func (w *worker) stmt() {
	kind := w.IntN(30)
	if w.depth > 3 {
		kind %= 12
	}
	switch kind {
	case 0, 1:
		n := w.fresh("n")
		w.line("local %s = %s", n, w.num(3))
		w.nums = append(w.nums, n)
	case 2, 3:
		if n := w.of(w.nums, ""); n != "" && n[0] == 'n' {
			w.line("%s = wrap(%s)", n, w.num(3))
		}
	case 4:
		s := w.fresh("s")
		w.line("local %s = cut(%s)", s, w.str(3))
		w.strs = append(w.strs, s)
	case 5:
		l := w.fresh("l")
		w.line("local %s = {%s, %s, %s}", l, w.num(2), w.pick("nil", w.num(1)), w.num(1))
		w.lists = append(w.lists, l)
	case 6, 7:
		if l := w.of(w.lists, ""); l != "" {
			w.line(w.pick("%[1]s[#%[1]s + 1] = %[2]s", "%[1]s[#%[1]s + 1] = %[2]s", "table.insert(%[1]s, (%[2]s))", "if #%[1]s < 100 then table.insert(%[1]s, 1, (%[2]s)) end", "table.remove(%[1]s)", "%[1]s[2] = %[2]s", "%[1]s[(%[2]s) %% 50] = %[2]s",
				"for i = 1, #%[1]s < 100 and 12 or 0 do %[1]s[#%[1]s + 1] = i * 2.5 end", "%[1]s[#%[1]s] = nil"), l, w.num(2))
		}
	case 8:
		if o := w.of(w.objects, ""); o != "" {
			w.line(w.pick("%[1]s.x = wrap(%[1]s.x + %[2]s)", "%[1]s.y = %[2]s", "%[1]s:add(%[2]s)", "%[1]s.new = %[2]s", "%[1]s['x'] = %[2]s", "%[1]s.x = nil", "log(%[1]s.new)", "%[1]s.x, %[1]s.y = %[1]s.y, %[1]s.x"), o, w.num(2))
		}
	case 9:
		w.line("log(%s)", w.pick(w.num(2), w.str(2), w.num(2)+", "+w.num(1)))
	case 10:
		if w.inLoop && w.IntN(3) == 0 {
			w.line("if %s then break end", w.cond(2))
		} else if w.inThread {
			n := w.fresh("n")
			w.line("local %s = coroutine.yield(%s) or 1", n, w.num(2))
			w.nums = append(w.nums, n)
		}
	case 11:
		a, b := w.of(w.nums, ""), w.of(w.nums, "")
		if a != "" && a[0] == 'n' && b[0] == 'n' {
			w.line("%s, %s = %s, %s", a, b, b, a)
		}
	case 12, 13:
		w.line("if %s then", w.cond(2))
		w.block(3)
		w.line("else")
		w.block(2)
		w.line("end")
	case 14, 15:
		i := w.fresh("i")
		w.line("for %s = %s do", i, w.pick("1, 5", "5, 1, -2", "1, 3, 0.5", w.num(1)+" % 5, 6", "2^16 - 2, 2^16 + 2"))
		w.loop(4, i)
		w.line("end")
	case 16:
		n := w.fresh("n")
		w.line("local %s = 0", n)
		w.line("%s %s = %s + 1", w.pick("while "+n+" < 4 do", "repeat"), n, n)
		repeat := strings.Contains(w.b.String()[w.b.Len()-30:], "repeat")
		inner := w.fresh("i")
		w.line(" local %s = %s", inner, n)
		w.loop(3, inner)
		if repeat {
			w.line("until %s >= 4", n)
		} else {
			w.line("end")
		}
	case 17:
		i, v := w.fresh("i"), w.fresh("i")
		w.line("for %s, %s in ipairs(%s) do", i, v, w.of(w.lists, "({1, 2, 3})"))
		w.line(" if %s > 20 then break end", i)
		w.loop(3, i, v)
		w.line("end")
	case 18:
		k, v := w.fresh("k"), w.fresh("i")
		w.line("for %s, %s in pairs({x = %s, %s = %s, z = %s}) do log(%s)", k, v, w.num(1), w.pick("y", "w", "count"), w.num(1), w.num(1), k)
		w.loop(2, v)
		w.line("end")
	case 19, 20:
		f, a, b := w.fresh("f"), w.fresh("n"), w.fresh("n")
		dots := w.IntN(3) == 0
		w.line("%s(%s, %s%s)", w.pick("local function "+f, "local "+f+" = function"), a, b, map[bool]string{true: ", ..."}[dots])
		w.line(" %s, %s = %s or 2, %s or 3", a, b, a, b)
		w.body(4, dots, false, a, b)
		w.line(" return %s end", w.pick(a, a+" + "+b, a+", "+b, "tail("+a+", "+b+")", b+" - 1, "+a+", "+b+", 4"))
		w.funcs = append(w.funcs, f)
	case 21:
		f, n, dots := w.fresh("f"), w.fresh("n"), w.vararg
		w.vararg = false
		w.line("local function %s(%s)"+spend+" if %s < 1 then return %s end return %s end", f, n, n, w.num(1),
			w.pick("wrap("+f+"("+n+" % 7 - 1) + "+n+")", f+"("+n+" % 7 - 1)", n+" + "+f+"("+n+" % 5 - 1) + "+f+"("+n+" % 3 - 1)"))
		w.vararg = dots
		w.funcs = append(w.funcs, f)
	case 22:
		l, i, f := w.fresh("c"), w.fresh("n"), w.fresh("f")
		w.line("local %s = {} for i = 1, 4 do local %s = i * 2 %s[i] = function(a) %s = %s + (a or 1) return %s, i end end", l, i, l, i, i, i)
		w.line("local function %s(a) return %s[%s](a) end", f, l, w.pick("1", "4", "(a or 1) % 1 == 0 and (a or 1) % 4 + 1 or 2"))
		w.funcs = append(w.funcs, f)
	case 23, 24:
		o := w.fresh("o")
		w.line("local %s = %s(%s, %s)", o, w.pick("A.new", "B.new", "proxy"), w.num(1), w.num(1))
		w.objects = append(w.objects, o)
	case 25, 26, 27:
		n := w.fresh("n")
		nums := len(w.nums)
		vararg := w.IntN(2) == 0
		w.line("local %s = count(%s(function(%s)", n, w.pick("pcall", "pcall", "pcall", "pcall", "safely"), map[bool]string{true: "...", false: "p"}[vararg])
		w.body(4, vararg, false)
		if w.IntN(2) == 0 {
			w.line(" if %s then local r = %s end", w.cond(1), w.wrong())
		} else {
			w.line(" %s", w.pick("do return "+w.num(1)+", 2 end", "do return tail("+w.wrong()+") end", "local r = "+w.wrong(), "do return "+w.wrong()+" end"))
		}
		w.nums = w.nums[:nums]
		w.line("end, %s))", w.num(1))
		w.nums = append(w.nums, n)
	case 28:
		c, f := w.fresh("c"), w.fresh("f")
		wrap := w.IntN(2) == 0
		a := w.fresh("n")
		w.line("local %s = coroutine.%s(function(%s, ...)", c, map[bool]string{true: "wrap", false: "create"}[wrap], a)
		w.line(" %s = %s or 1", a, a)
		w.body(5, true, true, a)
		w.line(" return %s", w.pick(a, a+", 'ended'", w.wrong(), "tail("+a+", 2)"))
		w.line("end)")
		if wrap {
			w.line("local function %s(...) return count(pcall(%s, ...)) end", f, c)
		} else {
			w.line("local function %s(...) log(coroutine.status(%s)) return count(coroutine.resume(%s, ...)) end", f, c, c)
		}
		w.line("for i = 1, %d do log((%s(i, 2))) end", 1+w.IntN(4), f)
		w.funcs = append(w.funcs, f)
	case 29:
		f := w.fresh("f") // a function with many registers
		w.line("local function %s(a, b)", f)
		var names, values []string
		for i := range 60 + w.IntN(30) {
			names = append(names, fmt.Sprintf("m%d", i))
			values = append(values, fmt.Sprintf("(a or 0) + %d", i))
		}
		w.line(" local %s = %s", strings.Join(names, ", "), strings.Join(values, ", "))
		w.line(" for i = 1, 3 do %s = %s + i local g = function() return %s end %s = g() + tail(%s, i) end", names[50], names[55], names[50], names[55], names[7])
		w.line(" return %s + %s * 2, %s end", names[50], names[55], names[len(names)-1])
		w.funcs = append(w.funcs, f)
	}
}

// spend ends a program that takes long.
const spend = ` spent = spent + 1 if spent > 20000 then error('enough', 0) end`

const workingPrelude = `local out, spent = {}, 0
local function show(v) local t = type(v)
 if t == 'number' then return v == v and string.format('%.14g', v) or 'nan' end
 if t == 'table' and rawget(v, 'err') then return 'err:' .. tostring(v.err) end
 if t == 'string' or t == 'boolean' or t == 'nil' then return tostring(v) end
 return t end
local function log(...) local r = {} for i = 1, select('#', ...) do r[i] = show((select(i, ...))) end out[#out + 1] = table.concat(r, ' ') if #out > 400 then error('enough', 0) end end
local function wrap(n)` + spend + ` if n ~= n then return 0 end return n % 100003 end
local function cut(s) return string.sub(s, 1, 40) end
local function tail(a, b)` + spend + ` return a, b, 3 end
local function count(ok, v, ...) log(ok, v) return select('#', ...) end
local function safely(f, ...) local args = {...} return xpcall(function() return f(unpack(args)) end, function(e) return type(e) == 'string' and 'handled: ' .. e or e end) end
local A, B = {}, {}
A.__index = A
A.__add = function(a, b) if type(a) == 'number' then a, b = b, a end return A.new(wrap((a.x or 0) + (type(b) == 'number' and b or b.x or 0)), a.y) end
A.__unm = function(a) return A.new(-(a.x or 0), a.y) end
A.__concat = function(a, b) return 'cat' end
A.__eq = function(a, b) return (a.x or 0) == (b.x or 0) end
A.__lt = function(a, b) return (type(a) == 'number' and a or a.x or 0) < (type(b) == 'number' and b or b.x or 0) end
A.__le = function(a, b) return (a.x or 0) <= (b.x or 0) end
A.__call = function(self, n, ...) return wrap((self.x or 0) + n + select('#', ...)) end
A.__tostring = function(a) return 'A(' .. show(a.x) .. ')' end
function A.new(x, y) return setmetatable({x = x, y = y}, A) end
function A:get() return self.x or 0 end
function A:add(n) self.x = wrap((self.x or 0) + n) return self end
function A:sum(...) local s = self.x or 0 for i = 1, select('#', ...) do s = s + (select(i, ...)) end return wrap(s) end
setmetatable(B, {__index = A})
B.__index = function(t, k) if k == 'none' then return nil end return B[k] end
for _, k in ipairs({'__add', '__unm', '__concat', '__eq', '__lt', '__le', '__call', '__tostring'}) do B[k] = A[k] end
B.__newindex = function(t, k, v) rawset(t, k, v) end
function B.new(x, y) local b = {x = x, y = y} return setmetatable(b, B) end
function B:get() return (self.x or 0) * 2 end
local function proxy(x, y) local o = A.new(x, y) local seen = 0
 return setmetatable({}, {__index = function(_, k) seen = seen + 1 local v = o[k] if type(v) == 'function' then return function(_, ...) return v(o, ...) end end return v end,
  __newindex = function(_, k, v) seen = seen + 1 o[k] = v end, __add = function(a, b) return A.new(seen, 1) end, __unm = function() return o end, __concat = function() return 'proxy' .. seen end,
  __tostring = function() return 'P' .. seen end, __call = function(_, n) return n + seen end}) end
`

// workingProgram is a script that returns what it logged, whether it came to its end or not.
func workingProgram(r *rand.Rand) string {
	w := &worker{Rand: r}
	w.b.WriteString(workingPrelude)
	w.line("local ok, e = pcall(function()")
	for range 6 + w.IntN(14) {
		w.stmt()
	}
	for _, list := range [][]string{w.nums, w.strs, w.objects} {
		for _, name := range list {
			w.line("log(%s)", name)
		}
	}
	for _, name := range w.lists {
		w.line("for i = 1, math.min(#%s, 30) do log(%s[i]) end", name, name)
	}
	w.line("end)")
	w.line("log(ok, e) out[#out + 1] = spent return out")
	return w.b.String()
}

func TestGeneratedWork(t *testing.T) { compareGenerated(t, workingProgram) }
