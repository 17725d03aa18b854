// Random programs over Lua tables: with holes, from all kinds of constructors, with values that come and go, nested, with
// keys of all types. Where # finds its border and in which order a table is listed follows from the sizes of its parts, so
// every program tells both again and again, and both servers must tell the same.
package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

const (
	tablePrograms         = 300 // how many programs are compared
	tableProgramsThorough = 12000
	tableStatements       = 30 // in a program, at most
)

// tableProgram writes one program.
type tableProgram struct {
	*rand.Rand
	b strings.Builder
}

func (p *tableProgram) pick(list ...string) string { return list[p.IntN(len(list))] }

func (p *tableProgram) table() string { return p.pick("a", "b", "c", "d") }

func (p *tableProgram) value() string {
	switch p.IntN(12) {
	case 0, 1, 2:
		return "nil"
	case 3:
		return p.pick("'x'", "'y'", "'long string that is no name'", "true", "false")
	case 4:
		return p.table() + "[" + p.key() + "]"
	case 5:
		return "#" + p.table()
	}
	return fmt.Sprint(p.IntN(100))
}

// some is a value that is not nil.
func (p *tableProgram) some() string { return p.pick("'x'", "7", "true", fmt.Sprint(p.IntN(50))) }

func (p *tableProgram) key() string {
	switch p.IntN(14) {
	case 0, 1:
		return "#" + p.table() + p.pick("", " + 1", " + 1", " - 1", " + 2")
	case 2, 3:
		return "'" + p.name() + "'"
	case 4:
		return p.pick("0", "-1", "1.5", "true", "false", "2^20", "-0.5", "1e100", "2^31", "2^53", "65536", "-7", "1e15", "33", "64", "100")
	case 5, 6:
		return fmt.Sprint(1 + p.IntN(40))
	}
	return fmt.Sprint(1 + p.IntN(9))
}

func (p *tableProgram) name() string {
	return p.pick("x", "y", "z", "n", "id", "name", "value", "count", "key1", "key2", "key3", "some_long_name", "", "a b")
}

// constructor is a table in any of the ways to write one.
func (p *tableProgram) constructor(depth int) string {
	var fields []string
	for range p.IntN(p.pick0(4, 8, 8, 20, 60)) {
		switch k := p.IntN(12); {
		case k < 7:
			fields = append(fields, p.value())
		case k == 7:
			fields = append(fields, p.pick("x", "y", "z", "count")+" = "+p.value())
		case k == 8:
			fields = append(fields, "["+fmt.Sprint(1+p.IntN(12))+"] = "+p.value())
		case k == 9 && depth < 2:
			fields = append(fields, p.constructor(depth+1))
		case k == 10:
			fields = append(fields, "(f("+p.value()+"))")
		default:
			fields = append(fields, "nil")
		}
	}
	if p.IntN(4) == 0 {
		fields = append(fields, p.pick("f("+p.values()+")", "unpack("+p.table()+")", "unpack({1, nil, 3})", "unpack({"+p.values()+"}, 1, "+fmt.Sprint(p.IntN(9))+")", "f()"))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (p *tableProgram) pick0(list ...int) int { return list[p.IntN(len(list))] }

func (p *tableProgram) values() string {
	v := make([]string, 1+p.IntN(7))
	for i := range v {
		v[i] = p.value()
	}
	return strings.Join(v, ", ")
}

func (p *tableProgram) statement(depth int) {
	t := p.table()
	line := func(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }
	switch p.IntN(36) {
	case 0, 1, 2:
		line("%s[%s] = %s", t, p.key(), p.value())
	case 3:
		line("%s[#%s + 1] = %s", t, t, p.some())
	case 4:
		line("%s[#%s] = nil", t, t)
	case 5, 6:
		line("%s[%d] = nil", t, 1+p.IntN(16))
	case 7, 8:
		line("try(table.insert, %s, %s)", t, p.some())
	case 9:
		line("try(table.insert, %s, %s, %s)", t, p.pick(fmt.Sprint(1+p.IntN(8)), "#"+t, "#"+t+" + 3"), p.value())
	case 10, 11:
		line("try(table.remove, %s)", t)
	case 12:
		line("try(table.remove, %s, %s)", t, p.pick(fmt.Sprint(1+p.IntN(8)), "#"+t))
	case 13:
		line("try(table.sort, %s%s)", t, p.pick("", ", byText", ", byText"))
	case 14:
		line("try(table.concat, %s, ','%s)", t, p.pick("", ", 1", ", 2, 5"))
	case 15, 16:
		line("%s = %s", t, p.constructor(0))
	case 17:
		line("%s = {%s}", t, p.pick("unpack("+p.table()+")", "unpack("+p.table()+", 1, "+fmt.Sprint(p.IntN(20))+")", "f("+p.values()+")", "nil, unpack("+p.table()+", 2)"))
	case 18:
		line("tell(select('#', unpack(%s)))", t)
	case 19:
		line("list(%s)", t)
	case 20:
		line("tell(#%s, table.getn(%s), table.maxn(%s))", t, t, t)
	case 21:
		line("for k in pairs(%s) do if %s then %s[k] = nil end end", t, p.pick("type(k) == 'number' and k % 2 == 0", "type(k) == 'string'", "true", "k == 3 or k == 'x'"), t)
	case 22:
		line("for i = %s do %s[i] = i end", p.pick("1, 5", "1, 17", "9, 1, -1", "20, 1, -1", "1, 33", "4, 12", "1, 40, 3", "64, 1, -5"), t)
	case 23:
		line("for i = %s do %s[i] = nil end", p.pick("1, 5", "1, 17", "9, 1, -1", "3, 30", "1, 40, 3", "2, 64, 2"), t)
	case 24:
		line("for i = 1, %d do %s['f' .. i] = i end", 1+p.IntN(12), t)
	case 25:
		line("local n = {} for k, v in pairs(%s) do n[k] = v end %s = n", t, p.table())
	case 26:
		line("local n = {} for i, v in ipairs(%s) do n[#n + 1] = v n.last = i end %s = n", t, p.table())
	case 27:
		line("try(function() %s = cjson.decode(cjson.encode(%s)) end)", p.table(), t)
	case 28:
		line("try(function() %s = cmsgpack.unpack(cmsgpack.pack(%s)) end)", p.table(), t)
	case 29:
		line("rawset(%s, %s, %s)", t, fmt.Sprint(1+p.IntN(12)), p.value())
	case 30:
		line("%s = redis.call('LRANGE', KEYS[1], 0, %d)", t, p.IntN(20))
	case 31:
		line("%s = %s", t, p.table())
	case 32:
		line("%s = %s(%s)", t, p.pick("packed", "named"), p.values())
	case 33:
		line("table.foreach(%s, function(k, v) tell(k, v) if k == 3 then return 1 end end) table.foreachi(%s, tell)", t, t)
	case 34:
		line("%s.%s = %s", t, p.pick("x", "y", "z", "count", "value"), p.value())
	case 35:
		if depth < 2 {
			line("for i = 1, %d do", 2+p.IntN(6))
			for range 1 + p.IntN(3) {
				p.statement(depth + 1)
			}
			line("end")
		} else {
			line("tell(next(%s))", t)
		}
	}
	if p.IntN(3) == 0 {
		line("tell(#%s)", t)
	}
}

// prelude are the functions of a program. Nothing that is told depends on an address.
const prelude = `local out = {}
local function show(v)
  if type(v) == 'table' then return 'table' end
  return type(v) == 'function' and 'function' or tostring(v)
end
local function tell(...) local s = '' for i = 1, select('#', ...) do s = s .. show((select(i, ...))) .. ' ' end out[#out + 1] = s end
local function list(t) for k, v in pairs(t) do tell(k, v) end tell(#t, table.maxn(t)) end
local function f(...) return ... end
local function packed(...) return {...} end
local function named(...) return arg end
local function byText(x, y) return show(x) < show(y) end
local function try(fn, ...) tell(pcall(fn, ...)) end
local a, b, c, d = `

func newTableProgram(r *rand.Rand) string {
	p := &tableProgram{Rand: r}
	p.b.WriteString(prelude)
	p.b.WriteString("{}, {}, {}, {}\n")
	for _, t := range []string{"a", "b", "c", "d"} {
		fmt.Fprintf(&p.b, "%s = %s\n", t, p.constructor(0))
	}
	for range 5 + p.IntN(tableStatements-5) {
		p.statement(0)
	}
	p.b.WriteString("list(a) list(b) list(c) list(d) return out")
	return p.b.String()
}

func TestTablePrograms(t *testing.T) {
	oracle, tested := redis(t).Dial(t), peer.LimitKV(t).Dial(t)
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	t.Logf("seed %d", base)
	for _, c := range []*peer.Conn{oracle, tested} {
		for i := range 20 {
			c.Must(t, "RPUSH", "list", fmt.Sprint("value", i))
		}
	}
	programs := tablePrograms
	if *thorough {
		programs = tableProgramsThorough
	}
	r := rand.New(rand.NewPCG(base, 1))
	told, different := 0, 0
	for i := range programs {
		program := newTableProgram(r)
		want, got := oracle.Must(t, "EVAL", program, "1", "list"), tested.Must(t, "EVAL", program, "1", "list")
		if i%500 == 499 {
			oracle.Must(t, "SCRIPT", "FLUSH")
			tested.Must(t, "SCRIPT", "FLUSH")
		}
		told += len(want.Items)
		if got.Equal(want) {
			continue
		}
		if different++; different <= differencesInRandom {
			t.Errorf("seed %d, program %d:\n%s\n%s", base, i, program, firstDifference(want, got))
		}
	}
	t.Logf("%d programs told %d lines, %d programs differ", programs, told, different)
	if told < 20*programs {
		t.Errorf("%d programs told only %d lines", programs, told)
	}
}

// firstDifference tells where two lists begin to differ.
func firstDifference(want, got peer.Value) string {
	for i := range min(len(want.Items), len(got.Items)) {
		if !want.Items[i].Equal(got.Items[i]) {
			return fmt.Sprintf("line %d of %d:\n got %v\nwant %v", i, len(want.Items), got.Items[i], want.Items[i])
		}
	}
	return fmt.Sprintf(" got %d lines %.200s\nwant %d lines %.200s", len(got.Items), got.String(), len(want.Items), want.String())
}
