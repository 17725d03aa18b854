package luavm

// The time of scripts without that of their commands: typical scripts of limiters, queues and locks, with a host
// that answers at once.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/resp"
)

// cannedHost answers each command with the same bytes every time.
type cannedHost struct {
	testHost
	replies map[string]*[]byte
}

func (h *cannedHost) Lookup(name []byte) any {
	if r := h.replies[strings.ToLower(string(name))]; r != nil {
		return r
	}
	return nil
}

func (h *cannedHost) Call(cmd any, _ [][]byte, _ int) []byte { return *cmd.(*[]byte) }

func newCannedHost(replies map[string]string) *cannedHost {
	h := &cannedHost{replies: map[string]*[]byte{}}
	for name, reply := range replies {
		b := []byte(reply)
		h.replies[name] = &b
	}
	return h
}

var benchScripts = []struct {
	name, script string
	keys, args   []string
	replies      map[string]string
}{
	{"nothing", `return 1`, nil, nil, nil},
	{"incr", `return redis.call('incr', KEYS[1])`, []string{"counter"}, nil, map[string]string{"incr": ":7\r\n"}},
	{"get", `return redis.call('get', KEYS[1])`, []string{"key"}, nil, map[string]string{"get": "$5\r\nhello\r\n"}},
	{"set", `return redis.call('set', KEYS[1], ARGV[1])`, []string{"key"}, []string{"value"}, map[string]string{"set": "+OK\r\n"}},
	{"counter", `local n = redis.call('incr', KEYS[1])
if n and tonumber(n) > tonumber(ARGV[1]) then
  return n
end
if tonumber(n) == 1 then
  redis.call('expire', KEYS[1], ARGV[2])
end
return n`, []string{"requests"}, []string{"100", "60"}, map[string]string{"incr": ":7\r\n", "expire": ":1\r\n"}},
	{"window", `redis.call('zremrangebyscore', KEYS[1], 0, ARGV[1])
local n = redis.call('zcard', KEYS[1])
if n == nil or n < tonumber(ARGV[3]) then
  redis.call('zadd', KEYS[1], ARGV[2], ARGV[4])
  return 0
end
return 1`, []string{"window"}, []string{"1699999940000", "1700000000000", "100", "0c1f9ae2"},
		map[string]string{"zremrangebyscore": ":0\r\n", "zcard": ":42\r\n", "zadd": ":1\r\n"}},
	{"lock", `if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then
  return redis.call('expire', KEYS[1], ARGV[2])
else
  return 0
end`, []string{"lock"}, []string{"holder", "30"}, map[string]string{"setnx": ":1\r\n", "expire": ":1\r\n"}},
	{"unlock", `if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0`, []string{"lock"}, []string{"holder"}, map[string]string{"get": "$6\r\nholder\r\n", "del": ":1\r\n"}},
	{"queue", `local first = redis.call('zrange', KEYS[1], 0, 0, 'withscores')
if first then
  if first[2] and tonumber(first[2]) <= tonumber(ARGV[1]) then
    redis.call('zrem', KEYS[1], first[1])
    return first[1]
  end
end
return nil`, []string{"queue"}, []string{"1700000000"},
		map[string]string{"zrange": "*2\r\n$8\r\njob:1234\r\n$10\r\n1699999999\r\n", "zrem": ":1\r\n"}},
	{"permits", `local rate = redis.call('hget', KEYS[1], 'rate')
local interval = redis.call('hget', KEYS[1], 'interval')
local kind = redis.call('hget', KEYS[1], 'type')
assert(rate ~= false and interval ~= false and kind ~= false, 'no limiter')
local valueKey, permitsKey = KEYS[2], KEYS[4]
if kind == '1' then
  valueKey, permitsKey = KEYS[3], KEYS[5]
end
assert(tonumber(rate) >= tonumber(ARGV[1]), 'more than there ever are')
local left = redis.call('get', valueKey)
if left ~= false then
  local over = redis.call('zrangebyscore', permitsKey, 0, tonumber(ARGV[2]) - interval)
  local released = 0
  for i, v in ipairs(over) do
    local random, permits = struct.unpack('fI', v)
    released = released + permits
  end
  if released > 0 then
    redis.call('zrem', permitsKey, unpack(over))
    left = tonumber(left) + released
    redis.call('set', valueKey, left)
  end
  if tonumber(left) < tonumber(ARGV[1]) then
    local nearest = redis.call('zrangebyscore', permitsKey, '(' .. (tonumber(ARGV[2]) - interval), tonumber(ARGV[2]), 'withscores', 'limit', 0, 1)
    return tonumber(nearest[2]) - (tonumber(ARGV[2]) - interval)
  else
    redis.call('zadd', permitsKey, ARGV[2], struct.pack('fI', ARGV[3], ARGV[1]))
    redis.call('decrby', valueKey, ARGV[1])
    return nil
  end
end
return nil`, []string{"{l}", "{l}:value", "{l}:value:c", "{l}:permits", "{l}:permits:c"}, []string{"1", "1700000000000", "12345"},
		map[string]string{"hget": "$4\r\n1000\r\n", "get": "$3\r\n500\r\n", "zrem": ":1\r\n", "set": "+OK\r\n", "zadd": ":1\r\n", "decrby": ":499\r\n",
			"zrangebyscore": "*1\r\n$8\r\n\x00\xe4\x40\x46\x01\x00\x00\x00\r\n"}},
	{"loop1000", `local s = 0 for i = 1, 1000 do s = s + i % 7 end return s`, nil, nil, nil},
	{"fib15", `local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(15)`, nil, nil, nil},
	{"table1000", `local t, s = {}, 0 for i = 1, 1000 do t[i] = i end for i = 1, #t do s = s + t[i] end return s`, nil, nil, nil},
	{"methods1000", `local A = {} A.__index = A function A:add(n) self.n = self.n + n end
local a = setmetatable({n = 0}, A) for i = 1, 1000 do a:add(i) end return a.n`, nil, nil, nil},
	{"math1000", `local n = 0 for i = 1, 1000 do n = n + math.floor(i / 3) + math.max(i, 5) end return n`, nil, nil, nil},
	{"byte1000", `local s, n = string.rep('a', 1000), 0 for i = 1, #s do n = n + s:byte(i) end return n`, nil, nil, nil},
	{"pcall100", `local n = 0 for i = 1, 100 do if pcall(function() n = n + 1 end) then n = n + 1 end end return n`, nil, nil, nil},
	{"errors100", `local n = 0 for i = 1, 100 do if not pcall(error, 'no') then n = n + 1 end end return n`, nil, nil, nil},
	{"faults100", `local n = 0 for i = 1, 100 do if not pcall(function() local x = nil; return x.y end) then n = n + 1 end end return n`, nil, nil, nil},
	{"switches100", `local co = coroutine.wrap(function() while true do coroutine.yield(1) end end) local n = 0 for i = 1, 100 do n = n + co() end return n`, nil, nil, nil},
	{"fields1000", `local p = {x = 1, y = 2} for i = 1, 1000 do p.x = p.x + p.y end return p.x`, nil, nil, nil},
	{"closures100", `local s = 0 for i = 1, 100 do local f = function() return i end s = s + f() end return s`, nil, nil, nil},
	{"struct100", `local n = 0 for i = 1, 100 do n = n + struct.unpack('I', struct.pack('I', i)) end return n`, nil, nil, nil},
	{"coroutines10", `local n = 0 for i = 1, 10 do local co = coroutine.wrap(function() coroutine.yield(i) end) n = n + co() co() end return n`, nil, nil, nil},
	{"concat100", `local t = {} for i = 1, 100 do t[#t + 1] = 'item:' .. i end return table.concat(t, ',')`, nil, nil, nil},
}

func BenchmarkRun(b *testing.B) {
	for _, c := range benchScripts {
		b.Run(c.name, func(b *testing.B) {
			vm, host := New(Config{}), newCannedHost(c.replies)
			s, err := Compile([]byte(c.script))
			if err != nil {
				b.Fatal(err)
			}
			keys, args := bytesList(c.keys), bytesList(c.args)
			w := &resp.Writer{}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Buf = w.Buf[:0]
				for _, k := range keys { // the next client's
					k[0] = 'a' + byte(i&15)
				}
				vm.Run(s, keys, args, host, w)
			}
			if w.Buf[0] == '-' {
				b.Fatalf("%q", w.Buf)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, c := range benchScripts {
		if c.name == "permits" {
			for b.Loop() {
				Compile([]byte(c.script))
			}
		}
	}
}
