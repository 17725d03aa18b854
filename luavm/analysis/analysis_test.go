package analysis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"
)

// testSpecs are the key specs of the commands that the tests use.
var testSpecs = map[string][]Spec{
	"ping": {}, "time": {}, "publish": {},
	"get": {{Index: 1}}, "set": {{Index: 1}}, "incr": {{Index: 1}}, "expire": {{Index: 1}}, "hget": {{Index: 1}}, "hset": {{Index: 1}},
	"zadd": {{Index: 1}}, "zrem": {{Index: 1}}, "zcard": {{Index: 1}}, "zrange": {{Index: 1}}, "zrevrange": {{Index: 1}}, "zrangebyscore": {{Index: 1}},
	"zremrangebyscore": {{Index: 1}}, "decrby": {{Index: 1}}, "hsetnx": {{Index: 1}}, "setnx": {{Index: 1}}, "ttl": {{Index: 1}}, "rpush": {{Index: 1}}, "lrange": {{Index: 1}}, "hgetall": {{Index: 1}},
	"del": {{Index: 1, Last: -1, Step: 1}}, "mget": {{Index: 1, Last: -1, Step: 1}}, "mset": {{Index: 1, Last: -1, Step: 2}},
	"rename": {{Index: 1}, {Index: 2}}, "blpop": {{Index: 1, Last: -2, Step: 1}}, "bitop": {{Index: 2}, {Index: 3, Last: -1, Step: 1}},
	"zunionstore": {{Index: 1}, {Index: 2, Numbered: true, NumAt: 0, FirstAt: 1, Step: 1}},
	"lmpop":       {{Index: 1, Numbered: true, NumAt: 0, FirstAt: 1, Step: 1}},
}

func testFinder(name string, args []Arg) (keys Keys, ok bool) {
	if name == "xread" { // its keys follow STREAMS, which cannot be found among unknown arguments
		for i, arg := range args {
			if !arg.Const {
				break
			}
			if strings.EqualFold(arg.Value, "STREAMS") {
				return keys, Spec{Index: i + 1, Last: -1, Step: 1, Limit: 2}.Find(args, &keys)
			}
		}
		return keys, false
	}
	specs, ok := testSpecs[name]
	for _, s := range specs {
		if !s.Find(args, &keys) {
			return keys, false
		}
	}
	return keys, ok
}

func analyse(t testing.TB, script string) Verdict {
	t.Helper()
	stmts, err := parse.Parse(strings.NewReader(script), "test")
	if err != nil {
		t.Fatalf("%s\n%v", script, err)
	}
	return Chunk(stmts, testFinder)
}

// Scripts whose keys must be proven.
func TestKeysProven(t *testing.T) {
	for _, script := range []string{
		`return 1`,
		`return redis.call('ping')`,
		`return redis.call('get', KEYS[1])`,
		`return redis.pcall("GET", KEYS[1])`,
		`return redis['call']('get', KEYS[1])`,
		`return redis.call('set', KEYS[1], ARGV[1])`,
		`return redis.call('set', KEYS[1], 'a' .. ARGV[1] .. tostring(1))`,
		`return redis.call('get', KEYS[#KEYS])`,
		`return redis.call('get', KEYS[tonumber(ARGV[1])])`,
		`return redis.call('get', (KEYS[1]))`,
		"local key = KEYS[1]\nreturn redis.call('get', key)",
		"local a, b = KEYS[1], KEYS[2]\nreturn redis.call('rename', a, b)",
		"local a = KEYS[2] if ARGV[1] == '1' then a = KEYS[3] end return redis.call('get', a)",
		"local a if ARGV[1] == '1' then a = KEYS[3] else a = KEYS[1] end return redis.call('get', a)",
		"local a = ARGV[1] and KEYS[1] or KEYS[2] return redis.call('get', a)",
		"local a = KEYS[1] local b = a local c = b return redis.call('get', c)",
		"local a = KEYS[1] local function f() return redis.call('get', a) end return f()",
		"local a = KEYS[1] local f = function() return redis.call('get', a) end return pcall(f)",
		"local a local function set() a = KEYS[1] end set() return redis.call('get', a)",
		"local function f(k) return redis.call('get', k) end return f(KEYS[1]) + f(KEYS[2])",
		"local function f(k, v) return redis.call('set', k, v) end f(KEYS[1], ARGV[1]) f(KEYS[2])",
		"local function f(i) return KEYS[i] end return redis.call('get', f(1))",
		"local function f(k) if k then return f(KEYS[2]) end return redis.call('get', k) end return f(KEYS[1])",
		"return (function(k) return redis.call('get', k) end)(KEYS[1])",
		"for i = 1, #KEYS do local k = KEYS[i] redis.call('incr', k) end",
		"for i = 1, #KEYS do redis.call('incr', KEYS[i]) end",
		"for i, k in ipairs(KEYS) do redis.call('incr', k) end",
		"for _, k in pairs(KEYS) do redis.call('incr', k) end",
		"local keys = KEYS for i, k in ipairs(keys) do redis.call('incr', k, keys[i]) end",
		"return redis.call('del', unpack(KEYS))",
		"return redis.call('del', KEYS[1], unpack(KEYS, 2))",
		"return redis.call('mget', unpack(KEYS))",
		"local a, b = unpack(KEYS) return redis.call('rename', a, b)",
		"local a, b = unpack(KEYS, 1, 2) return redis.call('mset', a, '1', b, '2')",
		"return redis.call('mset', KEYS[1], 'a', KEYS[2], 'b')",
		"return redis.call('mset', KEYS[1], 'a', KEYS[2], unpack(KEYS))",
		"return redis.call('zrem', KEYS[1], unpack(ARGV))",
		"return redis.call('zrem', KEYS[1], unpack(redis.call('zrange', KEYS[1], 0, -1)))",
		"return redis.call('bitop', 'and', KEYS[1], KEYS[2], KEYS[3])",
		"return redis.call('zunionstore', KEYS[1], 2, KEYS[2], KEYS[3], 'weights', 1, 2)",
		"local n = 2 return redis.call('zunionstore', KEYS[1], n, KEYS[2], KEYS[3], 'weights', 1, 2)",
		"return redis.call('zunionstore', KEYS[1], #KEYS - 1, unpack(KEYS, 2))",
		"return redis.call('lmpop', '1', KEYS[1], 'left', 'count', ARGV[1])",
		"return redis.call('xread', 'COUNT', 10, 'STREAMS', KEYS[1], KEYS[2], ARGV[1], ARGV[2])",
		"local call = redis.call return call('get', KEYS[1])",
		"local call, pcall = redis.call, redis.pcall return call('get', KEYS[1]), pcall('get', KEYS[2])",
		"local r = redis return r.call('get', KEYS[1])",
		"local redis = redis return redis.call('get', KEYS[1])",
		"local KEYS = KEYS return redis.call('get', KEYS[1])",
		"local unpack = unpack or table.unpack return redis.call('del', unpack(KEYS))",
		"local unpack = table.unpack or unpack return redis.call('del', unpack(KEYS))",
		"local cmd = 'get' return redis.call(cmd, KEYS[1])",
		"return redis.call(ARGV[1] == 'asc' and 'zrange' or 'zrevrange', KEYS[1], 0, -1)",
		"local cmd = 'zrange' if ARGV[1] then cmd = 'ZREVRANGE' end return redis.call(cmd, KEYS[1], 0, -1)",
		"local key = assert(KEYS[1], 'no key') return redis.call('get', key)",
		"if #KEYS == 0 then return redis.error_reply('no keys') end return redis.call('get', KEYS[1])",
		"if table.getn(KEYS) ~= 1 then return 0 end return redis.call('get', KEYS[1])",
		"redis.log(redis.LOG_WARNING, KEYS[1]) redis.setresp(3) return redis.sha1hex(KEYS[1])",
		"if redis.replicate_commands then redis.replicate_commands() end return redis.call('get', KEYS[1])",
		"return table.concat(KEYS, ',') .. cjson.encode(KEYS) .. tostring(#KEYS)",
		"return KEYS",
		"return {KEYS[1], ARGV[1]}",
		"local ok, e = pcall(function() return redis.call('incr', KEYS[1]) end) return tostring(e)",
		"local t = {} t.key = KEYS[1] t[2] = 'x' return redis.call('hset', KEYS[1], t.key, t[2])",
		"local t = redis.call('time') return redis.call('set', KEYS[1], t[1] * 1000000 + t[2])",
		"while true do redis.call('get', KEYS[1]) end",
		"repeat local k = KEYS[1] until redis.call('get', k)",
		"local function f(...) return redis.call('zadd', KEYS[1], ...) end return f(1, 'a')",
		"local t = {} table.insert(t, KEYS[1]) return redis.call('rpush', KEYS[2], unpack(t))",
		"return redis.call('get', nil)",
		"local k if ARGV[1] then k = nil else k = KEYS[1] end return redis.call('get', k)",
		"local s = 'x' s = s:upper() return redis.call('set', KEYS[1], s)",
		"do local k = 'x' end local k = KEYS[1] return redis.call('get', k)",
		"local k = 'x' do local k = KEYS[1] redis.call('get', k) end",
		"return redis.call('get', KEYS[1] or KEYS[2])",
	} {
		if v := analyse(t, script); !v.KeysProven {
			t.Errorf("not proven, line %d: %s\n%s", v.KeysLine, v.KeysReason, script)
		}
	}
}

// Scripts with tricks that must prevent the proof, with the line of the trick.
func TestKeysNotProven(t *testing.T) {
	for _, c := range []struct {
		script string
		line   int
		reason string // a part of it
	}{
		// Keys from elsewhere.
		{"return redis.call('get', 'k')", 1, "a key of 'get' (argument 1) is not from KEYS"},
		{"return redis.call('get', ARGV[1])", 1, "not from KEYS"},
		{"return redis.call('get', 1)", 1, "not from KEYS"},
		{"return redis.call('get', KEYS[1] .. ':x')", 1, "not from KEYS"},
		{"return redis.call('get', 'x' .. KEYS[1])", 1, "not from KEYS"},
		{"return redis.call('get', tostring(KEYS[1]))", 1, "not from KEYS"},
		{"return redis.call('get', tonumber(KEYS[1]))", 1, "not from KEYS"},
		{"return redis.call('get', KEYS[1]:upper())", 1, "not from KEYS"},
		{"return redis.call('get', string.sub(KEYS[1], 2))", 1, "not from KEYS"},
		{"return redis.call('get', KEYS[1][1])", 1, "not from KEYS"},
		{"return redis.call('get', -KEYS[1])", 1, "not from KEYS"},
		{"return redis.call('get', #KEYS)", 1, "not from KEYS"},
		{"return redis.call('get', KEYS[1] or 'x')", 1, "not from KEYS"},
		{"return redis.call('get', ARGV[1] or KEYS[1])", 1, "not from KEYS"},
		{"return redis.call('get', KEYS[1] and 'x')", 1, "not from KEYS"},
		{"return redis.call('get', ARGV[1] and ARGV[1] or KEYS[1])", 1, "not from KEYS"},
		{"return redis.call('get', true)", 1, "not from KEYS"},
		{"return redis.call('get', ...)", 1, "not from KEYS"},
		{"return redis.call('get', (...))", 1, "not from KEYS"},
		{"return redis.call('get', redis.call('get', KEYS[1]))", 1, "not from KEYS"},
		{"local k = KEYS[1]\nk = k .. 'x'\nreturn redis.call('get', k)", 3, "not from KEYS"},
		{"local k = KEYS[1]\nif ARGV[1] then k = 'x' end\nreturn redis.call('get', k)", 3, "not from KEYS"},
		{"local k = KEYS[1]\nlocal r = redis.call('get', k)\nk = 'x'\nreturn r", 2, "not from KEYS"},
		{"local k = KEYS[1]\nlocal function f() k = 'x' end\nf()\nreturn redis.call('get', k)", 4, "not from KEYS"},
		{"local k, j = KEYS[1], 'x'\nk, j = j, k\nreturn redis.call('get', k)", 3, "not from KEYS"},
		{"local u\nlocal f = u or redis.call\nreturn f('get', 'x')", 3, "not from KEYS"},
		{"local u if ARGV[1] then u = unpack end\nlocal f = u or redis.call\nreturn f('get', 'x')", 2, "redis.call is used as a value"},
		{"local f = ARGV[1] and unpack or redis.call\nreturn f('get', 'x')", 1, "redis.call is used as a value"},
		{"local k = 'x'\ndo local k = KEYS[1] end\nreturn redis.call('get', k)", 3, "not from KEYS"},
		{"local k = KEYS[1]\ndo local k = 'x' redis.call('get', k) end", 2, "not from KEYS"},
		{"local k = KEYS[1]\nlocal k = 'x'\nreturn redis.call('get', k)", 3, "not from KEYS"},
		{"local t = {KEYS[1]}\nreturn redis.call('get', t[1])", 2, "not from KEYS"},
		{"local t = {}\nt.k = KEYS[1]\nreturn redis.call('get', t.k)", 3, "not from KEYS"},
		{"local t = {'x'}\nreturn redis.call('del', unpack(t))", 2, "(from argument 1 on) are not from KEYS"},
		{"return redis.call('del', unpack(ARGV))", 1, "not from KEYS"},
		{"return redis.call('del', 'x', unpack(KEYS))", 1, "argument 1"},
		{"return redis.call('del', KEYS[1], unpack(ARGV))", 1, "from argument 2 on"},
		{"local a, b = unpack(ARGV)\nreturn redis.call('get', a)", 2, "not from KEYS"},
		{"for i, k in ipairs(ARGV) do\nredis.call('get', k) end", 2, "not from KEYS"},
		{"for i, k in ipairs(KEYS) do\nredis.call('get', i) end", 2, "not from KEYS"},
		{"for i, k in ipairs(KEYS) do\nk = k .. 'x'\nredis.call('get', k) end", 3, "not from KEYS"},
		{"for k in pairs(KEYS) do\nredis.call('get', k) end", 2, "not from KEYS"},
		{"for i = 1, #KEYS do\nredis.call('get', i) end", 2, "not from KEYS"},
		{"local function f(k) return redis.call('get', k) end\nf(KEYS[1])\nf('x')", 1, "not from KEYS"},
		{"local function f(k) return redis.call('get', k) end\nreturn pcall(f, 'x')", 1, "not from KEYS"},
		{"local function f(k) return redis.call('get', k) end\nlocal t = {f}\nt[1]('x')", 1, "not from KEYS"},
		{"local function f(k) return redis.call('get', k) end\nreturn f(unpack(ARGV))", 1, "not from KEYS"},
		{"local function f(...) return redis.call('get', ...) end\nreturn f(KEYS[1])", 1, "not from KEYS"},
		{"local function f() return 'x' end\nreturn redis.call('get', f())", 2, "not from KEYS"},
		{"local function f(a) if a then return KEYS[1] end return ARGV[1] end\nreturn redis.call('get', f())", 2, "not from KEYS"},
		{"local t = {}\nfunction t.f(k) return redis.call('get', k) end\nt.f(KEYS[1])", 2, "not from KEYS"},
		{"local t = {}\nfunction t:f(k) return redis.call('get', k) end\nt:f(KEYS[1])", 2, "not from KEYS"},
		{"local function f(a, ...) return redis.call('get', arg[1]) end\nreturn f(1, KEYS[1])", 1, "not from KEYS"},
		{"local x = redis.call('lrange', KEYS[1], 0, -1)\nfor _, k in ipairs(x) do redis.call('get', k) end", 2, "not from KEYS"},

		// Keys that are not first.
		{"return redis.call('bitop', 'and', KEYS[1], KEYS[2], 'x')", 1, "argument 4"},
		{"return redis.call('rename', KEYS[1], 'x')", 1, "argument 2"},
		{"return redis.call('mset', KEYS[1], 'a', 'x', 'b')", 1, "argument 3"},
		{"return redis.call('mset', KEYS[1], unpack(ARGV))", 1, "not from KEYS"},
		{"return redis.call('blpop', KEYS[1], 'x', 0)", 1, "argument 2"},
		{"return redis.call('zunionstore', KEYS[1], 2, KEYS[2], 'x')", 1, "argument 4"},
		{"return redis.call('zunionstore', 'x', 1, KEYS[2])", 1, "argument 1"},
		{"return redis.call('zunionstore', KEYS[1], ARGV[1], KEYS[2], 'weights', 1)", 1, "argument 4"},
		{"local n = 1\nn = n + 1\nreturn redis.call('zunionstore', KEYS[1], n, KEYS[2], 'x')", 3, "argument 4"},
		{"local n = 1\nif ARGV[1] then n = 2 end\nreturn redis.call('zunionstore', KEYS[1], n, KEYS[2], 'x')", 3, "argument 4"},
		{"return redis.call('lmpop', 010, KEYS[1], 'left')", 1, "argument 3"},
		{"return redis.call('xread', 'STREAMS', 'x', 0)", 1, "argument 2"},
		{"return redis.call('xread', 'COUNT', ARGV[1], 'STREAMS', KEYS[1], 0)", 1, "cannot be told"},

		// Commands that are not known.
		{"return redis.call('keys', '*')", 1, "the keys of 'keys' cannot be told"},
		{"return redis.call('nosuch', KEYS[1])", 1, "cannot be told"},
		{"return redis.call(ARGV[1], KEYS[1])", 1, "the command's name is not a constant"},
		{"return redis.call('ge' .. 't', KEYS[1])", 1, "the command's name is not a constant"},
		{"return redis.call(unpack(ARGV))", 1, "the command's name is not a constant"},
		{"return redis.call(KEYS[1], KEYS[2])", 1, "the command's name is not a constant"},
		{"return redis.call(1, KEYS[2])", 1, "the command's name is not a constant"},
		{"local c = 'get'\nc = ARGV[1]\nreturn redis.call(c, KEYS[1])", 3, "the command's name is not a constant"},
		{"return redis.call(ARGV[1] and 'get' or 'keys', KEYS[1])", 1, "the keys of 'keys' cannot be told"},

		// redis under another name, or out of sight.
		{"local r = redis\nr = {}\nreturn r.call('get', 'x')", 1, "redis is used as a value"},
		{"local call = redis.call\nreturn call('get', 'x')", 2, "not from KEYS"},
		{"local r = redis\nreturn r.call('get', 'x')", 2, "not from KEYS"},
		{"local r = redis\nlocal c = r['call']\nreturn c('get', 'x')", 3, "not from KEYS"},
		{"local redis = {call = redis.call}\nreturn redis.call('get', 'x')", 1, "redis.call is used as a value"},
		{"return redis['c' .. 'all']('get', 'x')", 1, "a member of redis"},
		{"return redis[ARGV[1]]('get', 'x')", 1, "a member of redis"},
		{"for k, f in pairs(redis) do\nif k == 'call' then f('get', 'x') end end", 1, "redis is used as a value"},
		{"return pcall(redis.call, 'get', 'x')", 1, "redis.call is used as a value"},
		{"return pcall(redis.call, 'get', KEYS[1])", 1, "redis.call is used as a value"},
		{"return redis.call == nil", 1, "redis.call is used as a value"},
		{"return string.gsub('x', 'x', redis.call)", 1, "redis.call is used as a value"},
		{"table.foreach({'get'}, redis.call)", 1, "redis.call is used as a value"},
		{"return redis:call('get', 'x')", 1, "redis is used as a value"},
		{"local function f(r) return r.call('get', 'x') end\nreturn f(redis)", 1, "not from KEYS"},
		{"local function f(redis) return redis.call('get', 'x') end\nreturn f(redis)", 1, "not from KEYS"},
		{"local function f() return redis end\nreturn f().call('get', 'x')", 1, "redis is used as a value"},
		{"local function f() return redis.call end\nreturn f()('get', 'x')", 1, "redis.call is used as a value"},
		{"local c = ARGV[1] and redis.call or redis.pcall\nreturn c('get', 'x')", 2, "not from KEYS"},
		{"local c = redis.call or tostring\nreturn c('get', 'x')", 1, "redis.call is used as a value"},
		{"local t = {redis.call}\nreturn t[1]('get', 'x')", 1, "redis.call is used as a value"},
		{"local t = {}\nt.r = redis\nreturn t.r.call('get', 'x')", 2, "redis is used as a value"},
		{"redis.call = function() end", 1, "the table redis is changed"},
		{"function redis.call() end", 1, "the table redis is changed"},
		{"redis = {call = tostring}", 1, "the global 'redis' is assigned to"},

		// KEYS changed, replaced, shadowed or handed on.
		{"KEYS[1] = 'x'\nreturn redis.call('get', KEYS[1])", 1, "KEYS is changed"},
		{"KEYS = {'x'}\nreturn redis.call('get', KEYS[1])", 1, "the global 'KEYS' is assigned to"},
		{"local KEYS = {'x'}\nreturn redis.call('get', KEYS[1])", 2, "not from KEYS"},
		{"local function f(KEYS) return redis.call('get', KEYS[1]) end\nreturn f({'x'})", 1, "not from KEYS"},
		{"for KEYS = 1, 2 do\nredis.call('get', KEYS) end", 2, "not from KEYS"},
		{"local k = KEYS\nk[1] = 'x'\nreturn redis.call('get', KEYS[1])", 2, "KEYS is changed"},
		{"table.insert(KEYS, 1, 'x')\nreturn redis.call('get', KEYS[1])", 1, "KEYS is used"},
		{"table.remove(KEYS)\nreturn redis.call('get', KEYS[1])", 1, "KEYS is used"},
		{"table.sort(KEYS, function() return true end)", 1, "KEYS is used"},
		{"local function f(t) t[1] = 'x' end\nf(KEYS)\nreturn redis.call('get', KEYS[1])", 1, "KEYS is changed"},
		{"local t = {KEYS}\nt[1][1] = 'x'", 1, "KEYS is used"},
		{"local t = KEYS or {}\nt[1] = 'x'", 1, "KEYS is used"},
		{"local f, t = ipairs(KEYS)\nt[1] = 'x'", 1, "KEYS is used"},
		{"local t = select(1, KEYS)\nt[1] = 'x'", 1, "KEYS is used"},
		{"local ok, t = pcall(error, KEYS)\nt[1] = 'x'", 1, "KEYS is used"},
		{"local t = assert(KEYS)\nt[1] = 'x'", 1, "KEYS is used"},
		{"local KEYS = ARGV\nreturn redis.call('get', KEYS[1])", 2, "not from KEYS"},
		{"local ARGV = KEYS\nARGV[1] = 'x'", 2, "KEYS is changed"},
		{"function KEYS.f() end", 1, "KEYS is changed"},
		{"function KEYS:f() end", 1, "KEYS is changed"},
		{"KEYS:f()", 1, "KEYS is used"},
		{"KEYS[1], KEYS[2] = KEYS[2], 'x'", 1, "KEYS is changed"},

		// Ways around all names.
		{"rawset(KEYS, 1, 'x')", 1, "the global 'rawset' is not followed"},
		{"setfenv(1, {redis = redis})", 1, "the global 'setfenv' is not followed"},
		{"local e = getfenv()\nreturn e.redis.call('get', 'x')", 1, "the global 'getfenv' is not followed"},
		{"return _G.redis.call('get', 'x')", 1, "the global '_G' is not followed"},
		{"return _G['red' .. 'is'].call('get', 'x')", 1, "the global '_G' is not followed"},
		{"return loadstring('return redis.call(\"get\", \"x\")')()", 1, "the global 'loadstring' is not followed"},
		{"local l = load\nl(function() end)()", 1, "the global 'load' is not followed"},
		{"dofile('x')", 1, "the global 'dofile' is not followed"},
		{"setmetatable(KEYS, {__index = function() return 'x' end})", 1, "the global 'setmetatable' is not followed"},
		{"getmetatable('').__index = function() return 'x' end", 1, "the global 'getmetatable' is not followed"},
		{"local co = coroutine.wrap(redis.call)\nreturn co('get', 'x')", 1, "the global 'coroutine' is not followed"},
		{"debug.setupvalue(1)", 1, "the global 'debug' is not followed"},
		{"return server.call('get', KEYS[1])", 1, "the global 'server' is not followed"},
		{"x = 1", 1, "the global 'x' is assigned to"},
		{"function f() end", 1, "the global 'f' is assigned to"},
		{"tostring = function() return 'x' end", 1, "the global 'tostring' is assigned to"},
		{"string.format = function() return 'x' end", 1, "the library 'string' is changed"},
		{"return arg[1]", 1, "the global 'arg' is not followed"},

		// The first reason in the source is told.
		{"local a = 1\nredis.call('get', 'x')\nredis.call('get', 'y')", 2, "not from KEYS"},
		{"local function f()\nreturn redis.call('get', 'x') end\nKEYS[1] = 'x'", 2, "not from KEYS"},
		{"return redis.call('mget',\nKEYS[1],\n'x')", 3, "argument 2"},
	} {
		v := analyse(t, c.script)
		if v.KeysProven {
			t.Errorf("proven:\n%s", c.script)
		} else if v.KeysLine != c.line || !strings.Contains(v.KeysReason, c.reason) {
			t.Errorf("line %d: %s\nwant line %d: %s\n%s", v.KeysLine, v.KeysReason, c.line, c.reason, c.script)
		}
	}
}

func TestTooDeepOrTooComplexIsNothingProven(t *testing.T) {
	deep := "return " + strings.Repeat("not ", NestingMax) + "1"
	if v := analyse(t, deep); v.KeysProven || v.KeysReason != "nested too deeply" {
		t.Errorf("%+v", v)
	}
	// The value assigned last reaches the first variable in one step per pass.
	vars := make([]string, 100)
	for i := range vars {
		vars[i] = "v" + strings.Repeat("i", i)
	}
	script := "local " + strings.Join(vars, ", ") + " = 'a'\n"
	for i := 0; i+1 < len(vars); i++ {
		script += vars[i] + " = " + vars[i+1] + "\n"
	}
	script += vars[len(vars)-1] + " = ARGV[1]\nfor i = 1, #ARGV do local x = " + vars[0] + " .. " + vars[1] + " end"
	if v := analyse(t, script); v.KeysProven || v.KeysReason != "too complex to follow" {
		t.Errorf("%+v", v)
	}
}

// Scripts that people use, which are not part of the project: all must be proven.
func TestUsersScripts(t *testing.T) {
	dir := os.Getenv("LIMITKV_SCRIPTS")
	if dir == "" {
		dir = "../../../shared/scripts"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.lua"))
	if len(files) == 0 {
		t.Skip("the scripts are not here; LIMITKV_SCRIPTS says where")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v := analyse(t, string(text))
		if !v.KeysProven {
			t.Errorf("%s: %+v", filepath.Base(name), v)
		}
	}
}
