// redis-cli in its modes: each prints the same on limitkv as on the real Redis, apart from what no two servers share.
package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// people is data of all kinds, with names and values that are hard to print.
const people = `
SET str:a hello
SET str:number 42
SET "str:quo\"te" "a \"b\" \\ \n\x00\xff,;"
SET str:utf8 "h\xc3\xa9llo"
SET str:big 0123456789012345678901234567890123456789012345678901234567890123456789
RPUSH list:a 1 2 3 4 5
RPUSH list:b x
HSET hash:a f1 v1
HSET hash:b f1 v1 f2 v2
SADD set:a 1 2 3 4
SADD set:b one
ZADD zset:a 1 a 2 b 3.5 c
ZADD zset:b inf z
XADD stream:a 1-1 k v
XADD stream:a 1-2 k v
PFADD hll a b c d
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
SET ttl 1 EX 10000
SELECT 3
SET three 3
`

// mask replaces what differs between servers.
type mask struct {
	pattern *regexp.Regexp
	by      string
}

func masked(pattern, by string) mask { return mask{regexp.MustCompile("(?m)" + pattern), by} }

var (
	// anyNumbers are measurements; anySizes are bytes of memory.
	anyNumbers = []mask{masked(`\d+(\.\d+)?`, "#"), masked(`#[KMG]?B?\b`, "#"), masked(` +`, " ")}
	// progress is what the scanning modes print as they find more, in the order of SCAN.
	progress = masked(`^\[\d.*found so far.*\n`, "")
	// summaries of commands are limitkv's own words.
	summaries = masked(`summary:.*$`, "summary")
	// ownCommands are those that Redis does not have.
	ownCommands = masked(`^.*(INCREX|SCRIPT (INFO|SHOW)).*\n(.*\n){3}`, "")
	// address is where a client or server is.
	address = masked(`127\.0\.0\.1:\d+`, "address")
)

// groups of commands that both have.
const groups = `bitmap cluster connection generic geo hash hyperloglog list pubsub scripting sentinel server set
	sorted-set stream string transactions`

// cliCase is a run of redis-cli. Both servers print the same once masks have been applied and, where sorted, the lines
// are in order.
type cliCase struct {
	name string
	call
	masks  []mask
	sorted bool
	holds  string // a part of the output, so that two failures are no success
}

func args(line ...string) call { return call{args: line} }

func piped(stdin string, line ...string) call { return call{args: line, stdin: stdin} }

// until is a run of what does not end by itself.
func until(output string, line ...string) call {
	return call{args: line, until: regexp.MustCompile(output)}
}

var cliCases = []cliCase{
	{name: "--scan", call: args("--scan"), sorted: true, holds: "str:quo\"te"},
	{name: "--scan --pattern", call: args("--scan", "--pattern", "str:*", "--count", "2", "-i", "0.001"), sorted: true, holds: "str:number"},
	{name: "--scan --quoted-pattern", call: args("--scan", "--quoted-pattern", `"str:\x61"`), holds: "str:a"},
	{name: "--bigkeys", call: args("--bigkeys"), masks: []mask{progress}, holds: `Biggest   list found "list:a" has 5 items`},
	{name: "--bigkeys of a pattern", call: args("--bigkeys", "--pattern", "*:a", "-i", "0.01"), masks: []mask{progress}, holds: "1 streams with 2 entries"},
	{name: "--memkeys", call: args("--memkeys"), masks: append([]mask{progress, masked(`^Biggest +(\w+) found .*`, "$1")}, anyNumbers...), sorted: true, holds: "list"},
	{name: "--memkeys-samples", call: args("--memkeys-samples", "0", "--pattern", "zset:?"), masks: append([]mask{progress, masked(`^Biggest +(\w+) found .*`, "$1")}, anyNumbers...), sorted: true},
	{name: "--keystats", call: args("--keystats"), masks: append([]mask{masked(`^ +\d+ +\S+ \w+ +".*$`, ""), masked(`^(\w+) +\S+ is .*$`, "$1 is")}, anyNumbers...), sorted: true, holds: "Key size Percentile"},
	{name: "--keystats-samples --top", call: args("--keystats-samples", "2", "--top", "3", "--cursor", "0"), masks: append([]mask{masked(`^ +\d+ +\S+ \w+ +".*$`, ""), masked(`^(\w+) +\S+ is .*$`, "$1 is")}, anyNumbers...), sorted: true, holds: "--- Top 3 key sizes ---"},
	{name: "--hotkeys without LFU", call: args("--hotkeys"), holds: "LFU"},
	{name: "--latency --raw", call: args("--latency", "--raw", "-i", "0.1"), masks: anyNumbers},
	{name: "--latency --csv", call: args("--latency", "--csv", "-i", "0.1"), masks: anyNumbers},
	{name: "--pipe", call: piped("SET p:1 1\r\n*3\r\n$3\r\nSET\r\n$3\r\np:2\r\n$1\r\n2\r\nINCR p:1\r\nLPUSH p:1 x\r\nDEL p:1 p:2\r\n", "--pipe"), holds: "errors: 1, replies: 5"},
	{name: "--pipe of what is no command", call: piped("*1\r\n$a\r\n", "--pipe", "--pipe-timeout", "2"), masks: []mask{masked(`rm.*$`, "")}},
	{name: "--eval", call: args("--eval", "{script}", "k1", "k2", ",", "a1", "a2"), holds: "a2"},
	{name: "--eval without keys", call: args("--no-raw", "--eval", "{script}", ",", "a1"), holds: `1) "a1"`},
	{name: "--eval that fails", call: args("--eval", "{broken}"), holds: "user_script"},
	{name: "-x", call: piped("a value\nof lines\n", "-x", "SET", "x"), holds: "OK"},
	{name: "what -x set", call: args("--no-raw", "GET", "x"), holds: `of lines\n`},
	{name: "-X", call: piped("tagged", "-X", "tag", "SET", "X", "tag", "EX", "100"), holds: "OK"},
	{name: "-r -i", call: args("-r", "3", "-i", "0.01", "INCR", "n"), holds: "3"},
	{name: "-d -D", call: args("-d", ";", "-D", "|", "--raw", "LRANGE", "list:a", "0", "-1"), holds: "1;2;3;4;5|"},
	{name: "--csv", call: args("--csv", "HGETALL", "hash:b"), holds: `"f1","v1","f2","v2"`},
	{name: "--csv of RESP3", call: args("--csv", "-3", "ZRANGE", "zset:a", "0", "-1", "WITHSCORES"), holds: "3.5"},
	{name: "--csv of nil and quotes", call: args("--csv", "MGET", `str:quo"te`, "nosuch"), holds: "NULL"},
	{name: "--json", call: args("--json", "HGETALL", "hash:b"), holds: `{"f1":"v1","f2":"v2"}`},
	{name: "--json -2", call: args("--json", "-2", "HGETALL", "hash:b"), holds: `["f1"`},
	{name: "--json of bytes", call: args("--json", "GET", "str:utf8"), holds: "héllo"},
	{name: "--quoted-json", call: args("--quoted-json", "GET", "str:utf8"), holds: `\\xc3\\xa9`},
	{name: "--json of an array of kinds", call: args("--json", "EVAL", "redis.setresp(3); return {1, {double=1.5}, {map={a=true}}, {set={b=true}}, false, {ok='fine'}, 'text'}", "0"), holds: "1.5"},
	{name: "--no-raw", call: args("--no-raw", "XRANGE", "stream:a", "-", "+"), holds: `2) 1) "k"`},
	{name: "--no-raw of RESP3", call: args("--no-raw", "-3", "HGETALL", "hash:a"), holds: `1# "f1" => "v1"`},
	{name: "--no-raw of a set", call: args("--no-raw", "-3", "SMEMBERS", "set:b"), holds: `1~ "one"`},
	{name: "--no-raw of doubles", call: args("--no-raw", "-3", "ZRANGE", "zset:b", "0", "-1", "WITHSCORES"), holds: "(double) inf"},
	{name: "--no-raw of bytes", call: args("--no-raw", "GET", `str:quo"te`), holds: `\x00\xff`},
	{name: "--raw of bytes", call: args("--raw", "GET", `str:quo"te`), holds: "\x00\xff"},
	{name: "--quoted-input", call: args("--quoted-input", "--no-raw", "GET", `"str:quo\x22te"`), holds: `\x00`},
	{name: "-n", call: args("-n", "3", "GET", "three"), holds: "3"},
	{name: "-n that is none", call: args("-n", "77", "GET", "three"), holds: "out of range"},
	{name: "-u", call: args("-u", "redis://{addr}/3", "GET", "three"), holds: "3"},
	{name: "-e", call: args("-e", "INCR", "list:a"), holds: "WRONGTYPE"},
	{name: "-e of an unknown command", call: args("-e", "NOSUCH", "a"), holds: "unknown command"},
	{name: "-c", call: args("-c", "GET", "str:a"), holds: "hello"},
	{name: "-t", call: args("-t", "2.5", "PING"), holds: "PONG"},
	{name: "-4", call: args("-4", "PING"), holds: "PONG"},
	{name: "--show-pushes", call: args("--show-pushes", "yes", "-3", "PING"), holds: "PONG"},
	{name: "--verbose", call: args("--verbose", "ECHO", "hi"), holds: "hi"},
	{name: "a password that nobody wants", call: args("-a", "secret", "--no-auth-warning", "PING"), holds: "AUTH failed"},
	{name: "the environment's password", call: call{args: []string{"PING"}, env: []string{"REDISCLI_AUTH=secret"}}, holds: "AUTH failed"},
	{name: "--cluster info of no cluster", call: args("--cluster", "info", "{addr}"), masks: []mask{address}, holds: "not configured as a cluster node"},
	{name: "SUBSCRIBE", call: until(`b\n2`, "SUBSCRIBE", "a", "b"), holds: "subscribe"},
	{name: "PSUBSCRIBE --no-raw", call: until(`\(integer\) 1`, "--no-raw", "-3", "PSUBSCRIBE", "a*"), holds: "psubscribe"},
	{name: "MONITOR", call: until("OK", "MONITOR"), holds: "OK"},
	{name: "commands at the prompt", call: piped(strings.Join([]string{
		"MULTI", "SET t 1", "INCR t", "EXEC", "MULTI", "INCR", "EXEC", "DISCARD", "WATCH t", "UNWATCH",
		"SELECT 3", "GET three", "SELECT 0", `SET q "a\x01b"`, "GET q", "3 INCR r",
		"CLIENT GETNAME", "RESET", "PING", `GET "unbalanced`, "DEL t q r n x X", "HELP", "QUIT"}, "\n") + "\n"), holds: "EXECABORT"},
	{name: "the prompt's help", call: piped("HELP SET\nHELP XADD\nHELP CLIENT KILL\nHELP nosuch\nHELP @nosuch\n"), masks: []mask{summaries}, holds: "NX"},
	{name: "the prompt's help of groups", call: piped("HELP @" + strings.Join(strings.Fields(groups), "\nHELP @") + "\n"), masks: []mask{summaries, ownCommands}, holds: "LMPOP"},
	{name: "--stat of a server that goes away", call: piped("", "-p", "1", "--stat"), holds: "Could not connect"},
}

func TestCLI(t *testing.T) {
	cli := find(t, "redis-cli")
	p := start(t)
	p.load(t, people)
	dir := t.TempDir()
	files := map[string]string{
		"{script}": "if #KEYS == 0 then return ARGV end return {KEYS, ARGV}",
		"{broken}": "return redis.call('get')",
	}
	var replace []string
	for name, text := range files {
		path := filepath.Join(dir, strings.Trim(name, "{}")+".lua")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace = append(replace, name, path)
	}
	for _, c := range cliCases {
		t.Run(c.name, func(t *testing.T) {
			for i, a := range c.args {
				c.args[i] = strings.NewReplacer(replace...).Replace(a)
			}
			c.args = append([]string{"-p", "{port}"}, c.args...)
			same(t, cli, p, c)
		})
	}
}

// same runs a case on both servers.
func same(t *testing.T, tool string, p pair, c cliCase) {
	t.Helper()
	want, got := run(t, tool, p.redis, c.call), run(t, tool, p.limitkv, c.call)
	if !strings.Contains(want.output, c.holds) {
		t.Errorf("Redis prints no %q:\n%s", c.holds, want.output)
	}
	if want.code != got.code {
		t.Errorf("the exit code is %d, should be %d", got.code, want.code)
	}
	if w, g := c.apply(want.output), c.apply(got.output); w != g {
		t.Errorf("%s\nprints, exit code %d:\n%.2000s", difference(w, g), got.code, got.output)
	}
}

// difference is the first line in which two texts differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; ; i++ {
		if i >= len(w) || i >= len(g) {
			return fmt.Sprintf("%d lines instead of %d", len(g), len(w))
		}
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n want %q\n  got %q", i+1, w[i], g[i])
		}
	}
}

func (c cliCase) apply(output string) string {
	for _, m := range c.masks {
		output = m.pattern.ReplaceAllString(output, m.by)
	}
	if c.sorted {
		lines := strings.Split(output, "\n")
		slices.Sort(lines)
		output = strings.Join(lines, "\n")
	}
	return output
}
