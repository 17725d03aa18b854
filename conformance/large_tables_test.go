// Large tables in scripts: tables that the server fills, at the sizes around every limit that an implementation may have
// and at a million, with every function and operator on tables. Both servers must tell the same of them.
package conformance

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// source is a way in which the server fills the table t with n values. n is the number that ARGV ends with, or its length.
type source struct {
	name string
	lua  string
	max  int // more values than that cannot come this way; 0: no limit
	keys bool
}

// What unpack and string.byte may return at once bounds what they fill.
const returnedMax = 7990

var sources = []source{
	{name: "ARGV", lua: "local t = ARGV"},
	{name: "KEYS", lua: "local t = KEYS", keys: true},
	{name: "LRANGE", lua: "local t = redis.call('LRANGE', 'list', 0, ARGV[1] - 1)"},
	{name: "ZRANGE", lua: "local t = redis.call('ZRANGE', 'zset', 0, math.ceil(ARGV[1] / 2) - 1, 'WITHSCORES')"},
	{name: "cjson", lua: "local t = cjson.decode('[' .. ('7,'):rep(ARGV[1] - 1) .. '8]')"},
	{name: "cmsgpack", lua: "local t = cmsgpack.unpack(cmsgpack.pack(redis.call('LRANGE', 'list', 0, ARGV[1] - 1)))"},
	{name: "map in cmsgpack", lua: "local m = {x = 1} for i = 1, ARGV[1] do m[i] = i end local t = cmsgpack.unpack(cmsgpack.pack(m))"},
	{name: "object in cjson", lua: "local t = {} for k, v in pairs(cjson.decode(cjson.encode({a = 1, b = redis.call('LRANGE', 'list', 0, ARGV[1] - 1)})).b) do t[k] = v end"},
	{name: "loop", lua: "local t = {} for i = 1, ARGV[1] do t[i] = i end"},
	{name: "loop downwards", lua: "local t = {} for i = tonumber(ARGV[1]), 1, -1 do t[i] = i end"},
	{name: "insert", lua: "local t = {} for i = 1, ARGV[1] do table.insert(t, 'v' .. i) end"},
	{name: "gmatch", lua: "local t = {} for w in (('ab '):rep(ARGV[1])):gmatch('%a+') do t[#t + 1] = w end"},
	{name: "unpack", lua: "local t = {unpack(redis.call('LRANGE', 'list', 0, ARGV[1] - 1))}", max: returnedMax},
	{name: "string.byte", lua: "local t = {string.byte(('x'):rep(ARGV[1]), 1, ARGV[1])}", max: returnedMax},
	{name: "struct.unpack", lua: "local t = {struct.unpack(('b'):rep(ARGV[1]), ('x'):rep(ARGV[1]))}", max: 200},
}

// operations on t; n is how many values it had.
var operations = []string{
	"", "t[1] = 'y'", "t[#t] = 'y'", "t[#t + 1] = 'z'", "t[#t] = nil", "t[n - 1] = nil", "t[math.floor(n / 2)] = nil", "t.x = 1 t[-1] = 2 t[0] = 3",
	"t[n + 2] = 'far'", "t[2 * n] = 'far'", "table.remove(t)", "table.remove(t, 1)", "table.remove(t, n - 1)", "table.insert(t, 'x')",
	"table.insert(t, 1, 'x')", "table.insert(t, n, 'x')", "table.insert(t, n + 2, 'x')", "for i = 1, 5 do t[#t + 1] = i end for i = 1, 9 do t[#t] = nil end",
	"rawset(t, n, 'x') rawset(t, n + 1, rawget(t, n))", "for i = n, 2, -3 do t[i] = nil end", "for i = 1, n do t[i] = nil end",
	"for k in pairs(t) do t[k] = nil end", "for i = 1, n, 2 do t[i] = nil end t.grow = 1 t.more = 2 t.still = 3",
	"t[1 + n / 1] = t[1] t[n + 1.5] = 1", "setmetatable(t, {__index = function(_, k) return k end}) t[1] = t[n + 3]",
	"setmetatable(t, {__newindex = function(t, k, v) rawset(t, k + 1, v) end}) t[n + 1] = 'x' t[n] = 'y'",
	"table.sort(t, function(a, b) return tostring(a) > tostring(b) end)", "for i, v in ipairs(t) do t[i] = tostring(v) end table.sort(t)",
	"for i = 1, n do t[i] = n - i end table.sort(t)",
	"local u = {} for i, v in ipairs(t) do u[v] = i end t = u", "local u = {} for i = 1, #t do u[i] = t[#t - i + 1] end t = u",
	"local c = 0 table.foreachi(t, function() c = c + 1 end) table.foreach(t, function() c = c + 1 end) t[n + 1] = c",
	"t[1] = next(t, n - 1) t[2] = next(t, 1) t[3] = tostring((next(t, n)))",
	"t[1] = table.concat(t, ',', math.max(1, n - 9), n) t[2] = #table.concat(t)",
	"t[1] = select('#', unpack(t, math.max(1, n - 50), n)) t[2] = select(3, unpack(t, math.max(1, n - 5), n + 5))",
	"redis.call('DEL', 'sent') for i = 1, n, 5000 do redis.call('RPUSH', 'sent', unpack(t, i, math.min(i + 4999, n))) end t = redis.call('LRANGE', 'sent', 0, -1) t[n + 1] = 1",
	"t[1] = redis.sha1hex(cjson.encode(t)) t[2] = redis.sha1hex(cmsgpack.pack(t))",
}

// told is what a script tells of t in the end: its length by all who know one, its values one by one in the order of ipairs
// and of pairs, and what is around its end.
const told = ` local count, sum, pairsCount, pairsSum = 0, 0, 0, 0
for i, v in ipairs(t) do count = count + 1 sum = (sum * 31 + i + #tostring(v)) % 1000003 end
for k, v in pairs(t) do pairsCount = pairsCount + 1 pairsSum = (pairsSum * 31 + #tostring(k) + #tostring(v)) % 1000003 end
return {#t, table.getn(t), table.maxn(t), count, sum, pairsCount, pairsSum, tostring(t[#t]), tostring(t[#t + 1]), tostring(t[n - 1]), tostring(t[n]), tostring(t[n + 1]), tostring(t[n + 2])}`

// largeSizes are the sizes that all of it runs at: around powers of two, fifty items as a constructor stores them, and 8,000
// values on the stack.
var largeSizes = []int{3, 4, 5, 49, 50, 51, 200, 1023, 1024, 1025, 7990, 32766, 32767, 32768, 32769, 65535, 65536, 65537}

// largeFrom is from which size on a script takes its time.
const largeFrom = 7000

// largestSize is a million, at which each source meets some of the operations and each operation some of the sources.
const largestSize = 1_000_000

func TestLargeTables(t *testing.T) {
	oracle := redis(t, "--busy-reply-threshold", "0").Dial(t)
	tested := peer.LimitKV(t).Dial(t)
	both := []*peer.Conn{oracle, tested}
	most := 1 << 17
	if *thorough {
		most = largestSize
	}
	for _, c := range both {
		fill := "for i = 1, ARGV[1] do redis.call('RPUSH', 'list', 'value' .. i) end"
		mustOK(t, c, "EVAL", fill+" return redis.status_reply('OK')", "1", "list", strconv.Itoa(most))
		fill = "for i = 1, ARGV[1] / 2 do redis.call('ZADD', 'zset', i, 'm' .. i) end"
		mustOK(t, c, "EVAL", fill+" return redis.status_reply('OK')", "1", "zset", strconv.Itoa(most))
	}
	ran := 0
	check := func(s source, operation string, n int) {
		if s.max > 0 && n > s.max {
			return
		}
		script := s.lua + " local n = " + strconv.Itoa(n) + " " + operation + told
		args := []string{"EVAL", script, "0", strconv.Itoa(n)}
		if s.name == "ARGV" || s.keys {
			args = args[:3]
			if s.keys {
				args[2] = strconv.Itoa(n)
			}
			for i := range n {
				args = append(args, "value"+strconv.Itoa(i+1))
			}
		}
		if t.Failed() && ran > 1000 {
			return
		}
		want, got := evalAt(t, oracle, args), evalAt(t, tested, args)
		if !got.Equal(want) {
			t.Errorf("%s, %d values, %q:\n got %v\nwant %v", s.name, n, operation, got, want)
		}
		ran++
	}
	for i, s := range sources {
		for j, operation := range operations {
			for k, n := range largeSizes {
				// All of it takes long: a run by default meets each source and each operation at each size now and then.
				every := 101
				if *thorough {
					every = 25
				}
				if n < largeFrom {
					every = 1 + every/20
				}
				if (i+j+k)%every == 0 {
					check(s, operation, n)
				}
			}
			if *thorough && (i+j)%(3*len(sources)) == 0 {
				check(s, operation, largestSize)
			}
		}
	}
	t.Logf("%d scripts compared", ran)
	if ran < 900 && !t.Failed() {
		t.Errorf("only %d scripts ran", ran)
	}
}

// scriptTime is how long a script with a million values may take.
const scriptTime = time.Minute

func evalAt(t *testing.T, c *peer.Conn, args []string) peer.Value {
	t.Helper()
	if err := c.Send(args...); err != nil {
		t.Fatal(err)
	}
	v, err := c.ReceiveWithin(scriptTime)
	if err != nil {
		t.Fatalf("%.200q: %v", args[:3], err)
	}
	return v
}

func mustOK(t *testing.T, c *peer.Conn, args ...string) {
	t.Helper()
	if v := evalAt(t, c, args); v.String() != "+OK" {
		t.Fatal(fmt.Sprintf("%.100q", args), v)
	}
}
