package luavm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/resp"
)

// countingHost counts the commands that run.
type countingHost struct {
	testHost
	runs  int
	reply string
}

func (h *countingHost) Lookup([]byte) any { return h }

func (h *countingHost) Call(any, [][]byte, int) []byte {
	h.runs++
	return []byte(h.reply)
}

// If the loop passes the error of a command to redis.call, the command does not run again.
func TestFailedCommandRunsOnce(t *testing.T) {
	for _, script := range []string{
		"redis.call('set', 'k', 'v') return 1",
		"local r = redis.call('set', 'k', 'v') return r",
		"return redis.call('set', 'k', 'v')",
		"local ok, e = pcall(function() local x = redis.call('set', 'k') return x end) return {err = e}",
		"local r = redis.pcall('set', 'k') return r",
	} {
		vm, host := New(Config{}), &countingHost{reply: "-WRONGTYPE of a test\r\n"}
		for run := 1; run <= 3; run++ {
			w := &resp.Writer{Proto: 2}
			s, err := Compile([]byte(script))
			if err != nil {
				t.Fatal(err)
			}
			vm.Run(s, nil, nil, host, w)
			if host.runs != run || !strings.HasPrefix(string(w.Buf), "-WRONGTYPE of a test") {
				t.Errorf("%s\nrun %d: %d commands ran, reply %q", script, run, host.runs, w.Buf)
			}
		}
		// The error does not affect the next command, which gets its own reply.
		host.reply = ":7\r\n"
		w := &resp.Writer{Proto: 2}
		s, _ := Compile([]byte("local n = redis.call('incr', 'k') return n + 1"))
		if vm.Run(s, nil, nil, host, w); string(w.Buf) != ":8\r\n" {
			t.Errorf("%s\nand then: %q", script, w.Buf)
		}
	}
}

// The watch can end every script that may run for ever, and no pcall of the script catches that.
func TestWatch(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	for _, script := range []string{
		"while true do end",
		"repeat until false",
		"local i = 0 repeat i = i + 1 until i < 0",
		"local i = 0 repeat i = i + 1 until i <= 0",
		"local i = 0 repeat i = i + 1 until not (i > 0)",
		"for i = 1, math.huge do end",
		"for i = 1, 1e18 do local x = i end",
		"local i = 0 while i > -1 do i = i + 1 end",
		"local function f() return f() end return f()",
		"local function f() f() return f() end while true do pcall(f) end",
		"while true do pcall(function() while true do end end) end",
		"while true do xpcall(function() while true do end end, function() while true do end end) end",
		"local co = coroutine.wrap(function() while true do end end) return co()",
		"local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
		"local co = coroutine.create(function() while true do end end) while true do coroutine.resume(co) end",
		"local co = coroutine.create(function() coroutine.yield() while true do end end) while true do coroutine.resume(co) end",
		"local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
		"local t = {1} while true do for k in pairs(t) do end end",
		"while true do for i in ipairs({1, 2}) do end end",
		"while true do redis.call('incr', 'k') end",
		"while true do redis.pcall('incr', 'k') end",
		"table.sort({3, 2, 1}, function(a, b) while true do end end)",
		"string.gsub('abc', '.', function() while true do end end)",
		"for w in string.gmatch(string.rep('a', 1000000), '.') do while true do end end",
		"load(function() while true do end end)",
		"load(function() return ' ' end)",
		"string.rep('a', 100000):find(string.rep('a-', 60) .. 'b')",
		"string.rep('a', 1000000):find('a*a*a*a*b')",
		"string.rep('(', 1000000):find('%b()%b()')  string.rep('(', 1000000):match('.-%b()x')",
		"string.rep('ab', 500000):match('.-.-[^abc]')",
		"return string.rep('a', 300000):find(string.rep('a', 150000) .. 'b', 1, true), string.rep('a', 300000):find('.-b')",
		"table.insert({}, 2^31, 1)",
		"table.insert({}, -1e9, 1)",
		"local t = {} while true do table.insert(t, 1, 1) end",
		"local t = {} for i = 1, 1000 do t[i] = i end while true do table.remove(t, 1) t[#t + 1] = 1 end",
		"local t = {} for i = 1, 100000 do t[i] = i % 7 end while true do table.sort(t) end",
		"local t = {} for i = 1, 1000 do t[i] = ARGV[1]:sub(1, 10000) end while true do local s = table.concat(t) end",
		"while true do local s = string.rep(ARGV[1], 100) end",
		"while true do local s = ARGV[1] .. ARGV[1] end",
		"while true do local s = ARGV[1]:upper():lower():reverse() end",
		"while true do local s = string.format('%s%q', ARGV[1], ARGV[1]) end",
		"while true do local x = ARGV[1]:find('b', 1, true) end",
		"local t = {} for i = 1, 100000 do t[i] = i end while true do cjson.decode(cjson.encode(t)) end",
		"local t = {} for i = 1, 100000 do t[i] = i end while true do cmsgpack.unpack(cmsgpack.pack(t)) end",
		"local t = {} for i = 1, 20 do t = {t, t} end while true do cjson.encode(t) end",
		"while true do local h = redis.sha1hex(ARGV[1]) end",
		"while true do table.foreach({1}, function() end) end",
		"while true do table.maxn({1, 2, 3}) end",
		"while true do unpack({1, 2, 3}, 1, 5000) end",
		"while true do struct.pack('s', ARGV[1]) end",
		"local e = {} for i = 1, 1000 do e[i] = 'x' end while true do local s = struct.unpack('s', ARGV[1] .. string.char(0)) end",
		"while true do tostring(1) end",
		"local t = {} for i = 1, 40 do t = {t, t} end return t",
		"local t = {} for i = 1, 40 do t = {map = {a = t, b = t}} end return t",
		"while true do local x = string.rep('a', 1000):find('[' .. string.rep('b-c', 100000) .. ']*a') end",
		"local a, b = ARGV[1] .. 'x', ARGV[1] .. 'y' while true do local x = a == b or a < b or a <= b end",
		"while true do table.foreach({1, 2}, type) end",
		"local t = {} for i = 1, 1000000 do t[i] = 1 end while true do table.sort(t, rawequal) end",
		"while true do local x = cjson.decode('[' .. string.rep(' ', 100000) .. ']') end",
		"local s = cjson.encode({ARGV[1], ARGV[1]}) while true do cjson.decode(s) end",
		"local s = cmsgpack.pack({ARGV[1], ARGV[1]}) while true do cmsgpack.unpack(s) end",
		"while true do struct.unpack(string.rep('x', 100000), ARGV[1]) end",
		"local m = setmetatable({}, {__lt = function() while true do end end}) return m < m",
		"local m = setmetatable({}, {__concat = function() while true do end end}) return m .. 'x'",
	} {
		vm, host := New(Config{}), &countingHost{reply: ":1\r\n"}
		began := time.Now()
		var asked int
		var longest time.Duration // between two calls of the watch
		last := began
		vm.Watch(func() (int, error) {
			asked++
			now := time.Now()
			longest = max(longest, now.Sub(last))
			last = now
			if now.Sub(began) > 50*time.Millisecond {
				return 0, errors.New("ended by the test")
			}
			return budget.Steps, nil
		})
		s, err := Compile([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		w := &resp.Writer{Proto: 2}
		vm.Run(s, nil, [][]byte{[]byte(text)}, host, w)
		// Garbage collection and other tests may take a part of a second between two calls of the watch.
		if took := time.Since(began); !strings.HasPrefix(string(w.Buf), "-ERR ended by the test") || took > 10*time.Second {
			t.Errorf("%s\nwas asked %d times, at most %v apart, took %v: %.100q", script, asked, longest, took, w.Buf)
		}
		// The VM is as new.
		w = &resp.Writer{Proto: 2}
		vm.Watch(nil)
		s, _ = Compile([]byte("local t = {} for i = 1, 10 do t[i] = i end return #t + select('#', unpack(t))"))
		if vm.Run(s, nil, nil, host, w); string(w.Buf) != ":20\r\n" {
			t.Errorf("%s\nand then: %q", script, w.Buf)
		}
	}
}

// The error shows where a run was ended, at whatever instruction.
func TestWatchTellsLine(t *testing.T) {
	for _, script := range []string{
		"while true do tostring(1) end",
		"while true do pcall(function() end) end",
		"while true do (function() end)() end",
		"repeat until false",
		"local i = 0 repeat i = i + 1 until i < 0",
		"local i = 0 repeat i = i + 1 until not (i > 0)",
		"local t = {1, 2} while true do for i, v in ipairs(t) do end for k in pairs(t) do end end",
		"for i = 1, 1e18 do local x = i end",
		"while true do redis.call('incr', 'k') end",
	} {
		vm, host := New(Config{}), &countingHost{reply: ":1\r\n"}
		for at := range 100 {
			asked := 0
			vm.Watch(func() (int, error) {
				if asked++; asked > at {
					return 0, errors.New("ended")
				}
				return 1, nil
			})
			s, err := Compile([]byte(script))
			if err != nil {
				t.Fatal(err)
			}
			w := &resp.Writer{Proto: 2}
			if vm.Run(s, nil, nil, host, w); !strings.HasSuffix(string(w.Buf), ", on @user_script:1.\r\n") {
				t.Errorf("%s\nended at %d: %s", script, at, w.Buf)
				break
			}
		}
	}
}
