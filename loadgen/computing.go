package main

// The scripts run measures what scripts compute by themselves, with few or no commands. For each kind of work it compares the
// processor time of a script on both servers, in rounds in which the servers alternate. `make bench-compare OF=scripts` writes
// docs/SCRIPTS.md.

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	computingCPU    = 30 * time.Millisecond // of Redis in a round, at least
	computingAtMost = 1.5                   // claimed of every kind
	computingLoops  = 2.0                   // and of loops and tables
)

// computing is the list of scripts. Each runs with ARGV[1] = "7".
var computing = []struct {
	name, script string
	atMost       float64
}{
	{"loop of 10^6", `local s = 0 for i = 1, 1e6 do s = s + i % 7 end return s`, computingLoops},
	{"while of 10^5", `local i, s = 0, 0 while i < 1e5 do i = i + 1 if i % 3 == 0 then s = s + i end end return s`, computingLoops},
	{"table of 10^5 filled and summed", `local t, s = {}, 0 for i = 1, 1e5 do t[i] = i end for i = 1, #t do s = s + t[i] end return s`, computingLoops},
	{"table of 10^5 by ipairs", `local t, s = {}, 0 for i = 1, 1e5 do t[#t + 1] = i * 2 end for i, v in ipairs(t) do s = s + v end return s`, computingLoops},
	{"fields of 10^4 names by pairs", `local t, s = {}, 0 for i = 1, 1e4 do t['k' .. i] = i end for k, v in pairs(t) do s = s + v end return s`, computingLoops},
	{"fields of objects", `local p = {x = 1, y = 2} for i = 1, 1e5 do p.x = p.x + p.y end return p.x`, computingLoops},
	{"table.insert and sort", `local t = {} for i = 1, 1e4 do table.insert(t, (i * 7919) % 10007) end table.sort(t) return t[1]`, computingLoops},
	{"fib(24)", `local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(24)`, computingAtMost},
	{"closures", `local s = 0 for i = 1, 1e4 do local f = function() return i end s = s + f() end return s`, computingAtMost},
	{"methods", `local A = {} A.__index = A function A:add(n) self.n = self.n + n end
local a = setmetatable({n = 0}, A) for i = 1, 1e5 do a:add(i) end return a.n`, computingAtMost},
	{"pcall that succeeds", `local n = 0 for i = 1, 1e4 do if pcall(function() n = n + 1 end) then n = n + 1 end end return n`, computingAtMost},
	{"pcall of errors", `local n = 0 for i = 1, 1e4 do if not pcall(error, 'no') then n = n + 1 end end return n`, computingAtMost},
	{"pcall of errors in Lua", `local n = 0 for i = 1, 1e4 do if not pcall(function() local x = nil; return x.y end) then n = n + 1 end end return n`, computingAtMost},
	{"coroutines made", `local n = 0 for i = 1, 1e3 do local co = coroutine.wrap(function() coroutine.yield(i) end) n = n + co() co() end return n`, computingAtMost},
	{"coroutine switches", `local co = coroutine.wrap(function() while true do coroutine.yield(1) end end) local n = 0 for i = 1, 1e4 do n = n + co() end return n`, computingAtMost},
	{"string.byte", `local s, n = string.rep('abcdefghij', 1000), 0 for i = 1, #s do n = n + string.byte(s, i) end return n`, computingAtMost},
	{"s:byte", `local s, n = string.rep('abcdefghij', 1000), 0 for i = 1, #s do n = n + s:byte(i) end return n`, computingAtMost},
	{"string.sub and ..", `local s, t = 'abcdefghij', '' for i = 1, 1e4 do t = string.sub(s, i % 10, -2) .. i end return t`, computingAtMost},
	{"string.format", `local t for i = 1, 1e4 do t = string.format('%d:%s:%05.2f', i, 'key', i / 3) end return t`, computingAtMost},
	{"gsub", `local s = string.rep('hello world from lua ', 500) local t, n = string.gsub(s, '%w+', '<%0>') return n`, computingAtMost},
	{"gmatch", `local n = 0 for k, v in string.gmatch(string.rep('key=value, ', 1000), '(%w+)=(%w+)') do n = n + #k + #v end return n`, computingAtMost},
	{"string.find", `local s, n = string.rep('a', 1000) .. 'b', 0 for i = 1, 1000 do n = n + string.find(s, 'b', 1, true) end return n`, computingAtMost},
	{"table.concat", `local t = {} for i = 1, 1e4 do t[i] = 'item:' .. i end return #table.concat(t, ',')`, computingAtMost},
	{"cjson of small objects", `local n = 0 for i = 1, 1e3 do local o = cjson.decode('{"id":12345,"name":"job","data":{"a":[1,2,3],"b":true},"ts":1700000000.5}') n = n + #cjson.encode(o) end return n`, computingAtMost},
	{"cjson of 60 KB", `local t = {} for i = 1, 1000 do t[i] = {id = i, name = 'name' .. i, tags = {'a', 'b', i}} end
local s = cjson.encode(t) for i = 1, 5 do s = cjson.encode(cjson.decode(s)) end return #s`, computingAtMost},
	{"cmsgpack of small objects", `local n = 0 for i = 1, 1e3 do local o = cmsgpack.unpack(cmsgpack.pack({id = 12345, name = 'job', data = {1, 2, 3}, ok = true})) n = n + o.id end return n`, computingAtMost},
	{"cmsgpack of 1,000 objects", `local t = {} for i = 1, 1000 do t[i] = {id = i, name = 'name' .. i, tags = {'a', 'b', i}} end
local s for i = 1, 5 do s = cmsgpack.pack(t) t = cmsgpack.unpack(s) end return #s`, computingAtMost},
	{"struct", `local n = 0 for i = 1, 1e4 do n = n + struct.unpack('I', struct.pack('I', i)) end return n`, computingAtMost},
	{"bit", `local n = 0 for i = 1, 1e5 do n = bit.bxor(n, bit.lshift(i, 3)) end return n`, computingAtMost},
	{"math", `local n = 0 for i = 1, 1e5 do n = n + math.floor(i / 3) + math.max(i, 5) end return n`, computingAtMost},
	{"tostring and tonumber", `local n = 0 for i = 1, 1e4 do n = n + tonumber(tostring(i)) end return n`, computingAtMost},
	{"sha1hex", `local s for i = 1, 1e3 do s = redis.sha1hex('value' .. i) end return s`, computingAtMost},
	{"commands in a loop", `for i = 1, 1e4 do redis.call('SET', 'key:' .. i % 100, i) end return redis.call('GET', 'key:7')`, computingAtMost},
}

func runComputing(args []string) error {
	flags := flag.NewFlagSet("limitkv-benchmark scripts", flag.ExitOnError)
	limitkv := flags.String("limitkv", "bin/limitkv", "limitkv's binary")
	redis := flags.String("redis", binary("REDIS", "redis"), "Redis's binary; by default redis-server in PATH")
	out := flags.String("out", "", "file to write, empty for none")
	only := flags.String("only", "", "a part of the names of the scripts to measure; by default all")
	rounds := flags.Int("rounds", 5, "rounds of each script; the median counts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	servers, stop, err := startBoth(*limitkv, *redis)
	defer stop()
	if err != nil {
		return err
	}
	var table strings.Builder
	above := 0
	for _, c := range computing {
		if !strings.Contains(c.name, *only) {
			continue
		}
		micros, err := raceScript(servers, c.script, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		ratio := micros[0] / micros[1]
		if ratio > c.atMost {
			above++
		}
		fmt.Fprintf(os.Stderr, "%-32s %10.1f / %10.1f µs  %.2f\n", c.name, micros[0], micros[1], ratio)
		fmt.Fprintf(&table, "| %s | %.1f | %.1f | %s | %.1f |\n", c.name, micros[0], micros[1], verdict(ratio, ratio <= c.atMost), c.atMost)
	}
	if *out == "" {
		return nil
	}
	text := fmt.Sprintf("# Scripts that compute\n\n<!-- Written by make bench-compare OF=scripts. -->\n\n"+
		"The server's processor time for a run in microseconds, %s beside %s, on %s; medians of %d rounds in which the servers take turns.\n"+
		"A ratio below 1 is less than Redis takes. The scripts stand in loadgen/computing.go. %d of %d are above what is claimed.\n\n"+
		"| script | limitkv | Redis | ratio | at most |\n| --- | ---: | ---: | ---: | ---: |\n%s",
		servers[0].name+" "+servers[0].version, servers[1].name+" "+servers[1].version, machine(), *rounds, above, len(computing), table.String())
	return os.WriteFile(*out, []byte(text), 0o644)
}

// raceScript runs a script on both servers, alternating, and returns the time of one run on each. Both must give the same
// reply.
func raceScript(servers []*breadthServer, script string, rounds int) (micros [2]float64, err error) {
	request := []string{"EVALSHA", "", "0", "7"}
	var answers [2]string
	for i, s := range servers {
		loaded, err := s.tree("SCRIPT", "LOAD", script)
		if err != nil || loaded.kind == '-' {
			return micros, fmt.Errorf("it is refused: %v %v", loaded, err)
		}
		request[1] = loaded.text
		got, err := s.tree(request...)
		if err != nil || got.kind == '-' {
			return micros, fmt.Errorf("it fails: %v %v", got, err)
		}
		answers[i] = fmt.Sprint(got)
	}
	if answers[0] != answers[1] {
		return micros, fmt.Errorf("the answers differ: %s and %s", answers[0], answers[1])
	}
	send := func(s *breadthServer, n int) (time.Duration, error) {
		before := processorNanos(s.pid)
		for range n {
			if got, err := s.tree(request...); err != nil || got.kind == '-' {
				return 0, fmt.Errorf("it fails: %v %v", got, err)
			}
		}
		return time.Duration(processorNanos(s.pid) - before), nil
	}
	n := 1
	for ; n < 1<<16; n *= 2 {
		if took, err := send(servers[1], n); err != nil || took >= computingCPU {
			break
		}
	}
	var all [2][]float64
	for round := range rounds {
		for i := range servers {
			i = (i + round) % len(servers)
			took, err := send(servers[i], n)
			if err != nil {
				return micros, err
			}
			all[i] = append(all[i], float64(took.Nanoseconds())/1000/float64(n))
		}
	}
	for i := range all {
		slices.Sort(all[i])
		micros[i] = all[i][rounds/2]
	}
	return micros, nil
}
