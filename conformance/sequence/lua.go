// Random Lua: expressions over the values and library functions that scripts use, right and wrong ones, so that results,
// the text of numbers and the texts of errors are compared. Left out is what has an address, a time or chance in it.

package sequence

import (
	"fmt"
	"strings"
)

// luaDepth is how deep expressions nest.
const luaDepth = 3

var (
	luaNumbers = pick("0", "1", "-1", "2", "3", "7", "10", "255", "0.5", "0.1", "0.2", "-2.5", "1e15", "1e14", "123456789012345", "1e100", "1e-7",
		"2^31", "2^53", "1/3", "1e308*10", "-1e308*10", "0/0", "-0", "0x1F", "3.14159", "1e2", "100", "65536", "-128")
	luaStrings = pick("''", "'a'", "'abc'", "'hello world'", "'10'", "'0x10'", "'1e3'", "' 12 '", "'010'", "'1_0'", "'-5'", "'inf'", "'nan'", "'3.5'",
		"'a,b,c'", "'key=val'", "'\\0\\255'", "'%d'", "'x\\ny'", "'5 apples'", "'.5'", "'5.'", "'1e'", "'0x'", "'--1'")
	luaFormats = pick("%d", "%5d", "%-5d|", "%05d", "%+d", "%i", "%u", "%x", "%X", "%#x", "%o", "%c", "%s", "%10s|", "%-10s|", "%.2s", "%q", "%f", "%.2f",
		"%10.3f", "%e", "%.3e", "%g", "%.3g", "%G", "%E", "%%", "%5.1f|", "%.14g", "%.0f", "%y", "%", "%10.5d", "% d", "%.20f", "%ld")
	luaPatterns = pick("'a'", "'%d+'", "'%w+'", "'(%w+)=(%w+)'", "'^%s*(.-)%s*$'", "'[a-c]'", "'[^a]'", "'.'", "''", "'l+'", "'%s'", "'(.)(.)'", "'%a*'",
		"'()'", "'b$'", "'%f[%w]%w+'", "'%b()'", "'[%d.]+'", "'('", "'%'", "'[a'", "'x-'", "'a?b'", "'%1'", "'(a)%1'", "'%p'", "'\\0'", "'[]]'", "'[%a_]'")
	luaReplaced = pick("'x'", "'%0'", "'%1'", "'<%0%0>'", "''", "'%2'", "'%%'", "'%'", "string.upper", "{a = 'A', b = false, hello = 1}",
		"function(s) return nil end", "function(s) return #s end", "function(a, b) return b end")
	luaStruct = pick("b", "B", "h", "H", "i", "I", "l", "L", "f", "d", "s", "c3", "i3", "I2", ">h", "<I", "!4bi", "x", "bx", "fI", "Bc0", "i9", "c0", "z", "")
	luaJSON   = pick(`'[1,2,3]'`, `'[1.5,"a",true,null]'`, `'[[],[1]]'`, `'"x"'`, `'12'`, `'[1e3,-0,0.1]'`, `'["\\u00e9\\n"]'`, `'[1'`, `'{'`, `'[1,]'`, `'nul'`,
		`'[01]'`, `'[1] 2'`, `''`, `'[9007199254740993]'`, `'["a\\\\b"]'`, `'[0x1]'`, `'[+1]'`, `'[.5]'`, `'[1.]'`, `'["\\ud83d\\ude00"]'`, `'["\\ud83d"]'`, `'[nan]'`, `'[inf]'`)
)

// luaExpr is a random expression.
func luaExpr(g *generator, depth int) string {
	if depth == 0 || g.IntN(5) == 0 {
		switch g.IntN(9) {
		case 0, 1, 2:
			return luaNumbers(g)
		case 3, 4, 5:
			return luaStrings(g)
		case 6:
			return pick("nil", "true", "false")(g)
		}
		return pick("a", "b", "c", "t.x", "t[1]", "t.y.z", "KEYS[1]", "ARGV[1]", "ARGV[2]", "ARGV[9]", "nosuch")(g)
	}
	e := func() string { return luaExpr(g, depth-1) }
	n := func() string { return fmt.Sprint(g.IntN(9) - 3) }
	switch g.IntN(34) {
	case 0, 1, 2, 3, 4, 5:
		return "(" + e() + " " + pick("+", "-", "*", "/", "%", "^")(g) + " " + e() + ")"
	case 6, 7, 8:
		return "(" + e() + " .. " + e() + ")"
	case 9, 10:
		return "(" + e() + " " + pick("==", "~=", "<", "<=", ">", ">=", "and", "or")(g) + " " + e() + ")"
	case 11:
		return pick("-", "not ", "#")(g) + "(" + e() + ")"
	case 12:
		return "tostring(" + e() + ")"
	case 13:
		return "tonumber(" + e() + pick("", "", ", 10", ", 16", ", 2", ", 36", ", 99")(g) + ")"
	case 14, 15, 16:
		return "string.format(" + quoteLua(luaFormats(g)+pick("", "", " "+luaFormats(g))(g)) + ", " + e() + pick("", ", "+e())(g) + ")"
	case 17:
		return "string." + pick("upper", "lower", "len", "reverse", "byte")(g) + "(" + e() + ")"
	case 18:
		return "string.sub(" + e() + ", " + n() + pick("", ", "+n())(g) + ")"
	case 19:
		return "string.rep(" + e() + ", " + n() + ")"
	case 20, 21:
		return "string." + pick("find", "match")(g) + "(" + e() + ", " + luaPatterns(g) + pick("", "", ", "+n())(g) + pick("", "", ", true")(g) + ")"
	case 22, 23:
		return "string.gsub(" + e() + ", " + luaPatterns(g) + ", " + luaReplaced(g) + pick("", ", "+n())(g) + ")"
	case 24, 25:
		return "math." + pick("floor", "ceil", "abs", "sqrt", "modf", "frexp", "deg", "log10")(g) + "(" + e() + ")"
	case 26:
		return "math." + pick("max", "min", "fmod", "pow", "ldexp")(g) + "(" + e() + ", " + e() + ")"
	case 27:
		return "table.concat({" + e() + ", " + e() + ", " + e() + "}" + pick("", ", ','", ", "+e())(g) + ")"
	case 28:
		return "bit." + pick("band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror")(g) + "(" + e() + ", " + e() + ")"
	case 29:
		return "bit." + pick("bnot", "tobit", "tohex", "bswap")(g) + "(" + e() + ")"
	case 30:
		f := luaStruct(g)
		return pick("struct.pack('"+f+"', "+e()+", "+e()+")", "struct.unpack('"+f+"', "+e()+pick("", ", "+n())(g)+")",
			"struct.unpack('"+f+"', struct.pack('"+f+"', "+e()+", "+e()+"))", "struct.size('"+f+"')")(g)
	case 31:
		return pick("cjson.encode({"+e()+", "+e()+"})", "cjson.encode("+e()+")", "cjson.encode(cjson.decode("+luaJSON(g)+"))", "(cjson.decode("+luaJSON(g)+"))[1]")(g)
	case 32:
		return pick("cmsgpack.pack("+e()+", "+e()+")", "cmsgpack.unpack(cmsgpack.pack("+e()+"))", "cmsgpack.unpack("+e()+")", "cmsgpack.pack({"+e()+"})")(g)
	}
	return pick("select("+n()+", "+e()+", "+e()+")", "select('#', "+e()+", nil)", "unpack({"+e()+", "+e()+"}, "+n()+")", "redis.sha1hex("+e()+")",
		"#{"+e()+", "+e()+"}", "type("+e()+")", "rawequal("+e()+", "+e()+")", "redis.status_reply("+e()+").ok", "redis.error_reply("+e()+").err",
		"({"+e()+", "+e()+"})["+n()+"]", "(function(...) return select('#', ...) end)("+e()+", "+e()+")", "assert("+e()+", "+e()+")", "next({"+e()+"})",
		"redis.pcall('SET', KEYS[1], "+e()+").ok", "type(redis.pcall('ECHO', "+e()+"))", "redis.call('ECHO', "+e()+")", "type(redis.pcall('GET', "+e()+"))")(g)
}

func quoteLua(s string) string { return "'" + strings.ReplaceAll(s, "'", "\\'") + "'" }

// luaShow makes any value text that two servers can agree on: what it is, and how it is written.
const luaShow = "local function show(...) local r = {} for i = 1, select('#', ...) do local v = select(i, ...) " +
	"if type(v) == 'table' then r[i] = 'table ' .. #v .. (v.err and ' ' .. v.err or '') .. (v.ok and ' ' .. tostring(v.ok) or '') " +
	"elseif type(v) == 'function' or type(v) == 'userdata' then r[i] = type(v) else r[i] = type(v) .. ' ' .. tostring(v) end end return r end\n"

// luaProgram is a script that shows what an expression gives or how it fails, or lets it fail or be the reply itself.
func luaProgram(g *generator, _ *Family) []Step {
	e := luaExpr(g, luaDepth)
	prelude := fmt.Sprintf("local a, b, c, t = %s, %s, nil, {%s, x = %s}\n", luaNumbers(g), luaStrings(g), luaStrings(g), luaNumbers(g))
	var script string
	switch g.IntN(10) {
	case 0:
		script = prelude + "return " + e
	case 1:
		script = prelude + "local v = " + e + "\nif v then return tostring(v) end\nreturn v"
	case 2, 3, 4, 5, 6:
		script = luaShow + prelude + "return show(pcall(function() return " + e + " end))"
	case 7:
		script = luaShow + prelude + "for i = 1, 2 do\n a = " + e + "\n b = tostring(a)\nend\nreturn show(a, b)"
	default:
		script = luaShow + prelude + "return show(" + e + ")"
	}
	return []Step{{Args: []string{"EVAL", script, "1", "s1", texts(g), floats(g)}}}
}
