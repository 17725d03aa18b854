package main

// Forms of commands for the breadth run: the arguments from COMMAND DOCS, with values that fit the keys in the servers.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// leftOut are commands, or prefixes of their names, that change the server itself, close the connection, wait, or use state of
// the connection.
var leftOut = []string{
	"acl|", "asking", "auth", "bgrewriteaof", "bgsave", "blmove", "blmpop", "blpop", "brpop", "brpoplpush", "bzmpop", "bzpopmax", "bzpopmin",
	"client|kill", "client|no-evict", "client|no-touch", "client|pause", "client|reply", "client|setname", "client|setinfo", "client|tracking",
	"client|caching", "client|unblock", "client|unpause", "cluster|", "config|resetstat", "config|rewrite", "config|set", "debug", "discard", "exec", "failover",
	"flushall", "flushdb", "function|delete", "function|flush", "function|kill", "function|load", "function|restore", "hello", "latency|", "memory|doctor",
	"memory|malloc-stats", "memory|purge", "migrate", "module|", "monitor", "multi", "pfdebug", "pfselftest", "psubscribe", "psync", "punsubscribe", "quit",
	"readonly", "readwrite", "replconf", "replicaof", "reset", "restore-asking", "role", "save", "script|debug", "script|flush", "script|kill",
	"select", "shutdown", "slaveof", "slowlog|reset", "ssubscribe", "subscribe", "sunsubscribe", "swapdb", "sync", "unsubscribe", "unwatch",
	"wait", "waitaof", "watch",
}

// argument is an argument from COMMAND DOCS.
type argument struct {
	name, kind, token                 string
	optional, multiple, multipleToken bool
	parts                             []argument
}

// documented is a command with its arguments. A subcommand's name includes its container's.
type documented struct {
	name  []string
	group string
	args  []argument
}

func (d *documented) leftOut() bool {
	name := strings.Join(d.name, "|")
	return slices.ContainsFunc(leftOut, func(x string) bool {
		return x == name || strings.HasSuffix(x, "|") && strings.HasPrefix(name, x)
	}) || d.name[len(d.name)-1] == "help"
}

// says tells whether a reply has content.
func (t *tree) says() bool {
	switch t.kind {
	case '*', '%', '~':
		return slices.ContainsFunc(t.items, func(x tree) bool { return x.says() })
	case ':':
		return t.text != "0" && t.text != "-1" && t.text != "-2"
	}
	return t.kind != '_'
}

// writes tells whether a reply of COMMAND INFO is about a write command.
func (t *tree) writes() bool {
	return len(t.items) == 1 && len(t.items[0].items) > 2 &&
		slices.ContainsFunc(t.items[0].items[2].items, func(flag tree) bool { return flag.text == "write" })
}

func eachPair(t tree, fn func(name string, of tree)) {
	for i := 0; i+1 < len(t.items); i += 2 {
		fn(t.items[i].text, t.items[i+1])
	}
}

// askDocs reads the documentation of a server's commands, in order of name.
func askDocs(w *wire) (all []documented, err error) {
	t, err := w.tree("COMMAND", "DOCS")
	if err != nil {
		return nil, err
	}
	var read func(t tree, group string)
	read = func(t tree, group string) {
		eachPair(t, func(name string, doc tree) {
			d := documented{name: strings.Split(name, "|"), group: group}
			container := false
			eachPair(doc, func(field string, of tree) {
				switch field {
				case "group":
					d.group = of.text
				case "arguments":
					d.args = readArguments(of)
				case "subcommands":
					container = true
					read(of, d.group)
				}
			})
			if !container {
				all = append(all, d)
			}
		})
	}
	read(t, "")
	slices.SortFunc(all, func(a, b documented) int { return slices.Compare(a.name, b.name) })
	return all, nil
}

func readArguments(t tree) (args []argument) {
	for _, item := range t.items {
		var a argument
		eachPair(item, func(field string, of tree) {
			switch field {
			case "name":
				a.name = of.text
			case "type":
				a.kind = of.text
			case "token":
				a.token = of.text
			case "flags":
				for _, f := range of.items {
					a.optional = a.optional || f.text == "optional"
					a.multiple = a.multiple || f.text == "multiple"
					a.multipleToken = a.multipleToken || f.text == "multiple_token"
				}
			case "arguments":
				a.parts = readArguments(of)
			}
		})
		args = append(args, a)
	}
	return args
}

// forms makes random forms of a command.
type forms struct {
	*rand.Rand
	size  int
	group string
	kind  string // the kind of the keys in this form, of keyKinds
	keys  int    // the number of keys in numkeys, 0 for any
}

func (g *forms) command(d *documented) []string {
	g.group, g.keys = d.group, 0
	if g.kind = groupKinds[d.group]; g.kind == "" {
		g.kind = keyKinds[g.IntN(len(keyKinds))]
	}
	if g.kind == "str" && g.IntN(4) == 0 {
		g.kind = "int"
	}
	return g.arguments(slices.Clone(d.name), d.args)
}

// timesMax is how often an argument that can be repeated occurs at most.
const timesMax = 3

func (g *forms) arguments(out []string, args []argument) []string {
	for _, a := range args {
		if a.token == "BLOCK" || a.optional && g.IntN(2) == 0 {
			continue
		}
		times := 1
		switch {
		case a.multiple && a.kind == "key" && g.keys > 0:
			times = g.keys
		case a.multiple:
			times += g.IntN(timesMax)
		}
		for i := range times {
			if a.token != "" && (i == 0 || a.multipleToken) {
				out = append(out, a.token)
			}
			switch a.kind {
			case "oneof":
				out = g.arguments(out, a.parts[g.IntN(len(a.parts)):][:1])
			case "block":
				out = g.arguments(out, a.parts)
			case "pure-token":
			default:
				out = append(out, g.value(&a))
			}
		}
	}
	return out
}

// The kinds of keys, and the groups of COMMAND DOCS that use only one kind.
var (
	keyKinds   = []string{"str", "int", "list", "set", "zset", "hash", "stream"}
	groupKinds = map[string]string{
		"string": "str", "list": "list", "set": "set", "sorted-set": "zset", "hash": "hash", "stream": "stream", "geo": "geo",
		"bitmap": "str", "hyperloglog": "hll", "scripting": "str",
	}
)

// breadthScript and breadthLibrary are the script and the library of functions in requests.
const (
	breadthScript  = "return redis.call('TYPE', KEYS[1] or 'str:0')"
	breadthLibrary = "#!lua name=breadth\nredis.register_function{function_name='breadth', flags={'no-writes'}, callback=function(keys, args) return redis.call('TYPE', keys[1] or 'str:0') end}"
)

func (g *forms) value(a *argument) string {
	one := func(of ...string) string { return of[g.IntN(len(of))] }
	upTo := func(n int) string { return strconv.Itoa(g.IntN(n)) }
	switch a.kind {
	case "key":
		switch a.name {
		case "destination", "newkey", "dst":
			return "to:" + upTo(breadthKeys)
		}
		return g.kind + ":" + upTo(breadthKeys)
	case "integer":
		switch a.name {
		case "numkeys":
			g.keys = 1 + g.IntN(timesMax)
			return strconv.Itoa(g.keys)
		case "numfields":
			return "1"
		case "cursor", "destination-db":
			return "0"
		case "seconds", "milliseconds", "ms", "ttl":
			return strconv.Itoa(100_000 + g.IntN(100_000))
		case "start", "index", "offset", "min":
			return upTo(3)
		case "stop", "end":
			return one("-1", upTo(10))
		case "value":
			return upTo(2)
		}
		return strconv.Itoa(1 + g.IntN(9))
	case "double":
		switch a.name {
		case "longitude":
			return fmt.Sprintf("%.3f", 13+g.Float64())
		case "latitude":
			return fmt.Sprintf("%.3f", 38+g.Float64())
		case "radius", "width", "height":
			return one("10", "50")
		}
		return strconv.FormatFloat(float64(g.IntN(200))/16, 'g', -1, 64)
	case "pattern":
		return one("*", "*1*", "str:*", "max*")
	case "unix-time":
		return strconv.Itoa(4_102_444_800 + g.IntN(1000))
	}
	switch a.name {
	case "script":
		return breadthScript
	case "sha1":
		return shaOf(breadthScript)
	case "function":
		return "breadth"
	case "group":
		return one("group", "group", "group:"+upTo(100))
	case "consumer":
		return "consumer"
	case "id", "lastid", "last-id", "min-idle-time", "threshold":
		return one("0-1", "1-1", "9-1", "0", "$", "*", ">")
	case "start", "min":
		return one("0", "-", "-inf", "[m:1", "(1")
	case "stop", "end", "max":
		return one("9", "+", "+inf", "[m:9", "-1")
	case "encoding":
		return one("u8", "i16")
	case "field":
		return "f:" + upTo(g.size)
	case "command":
		return one("get", "set")
	case "parameter":
		return one("maxmemory", "save", "*max*")
	case "section":
		return one("server", "keyspace", "memory")
	case "clientaddr", "type":
		return one("string", "hash", "normal")
	case "bit":
		return upTo(2)
	}
	switch g.kind {
	case "list":
		return "e:" + upTo(g.size)
	case "set", "zset", "geo":
		return "m:" + upTo(g.size)
	}
	return "v:" + upTo(g.size)
}

// fillBreadth makes the keys that are copied before each round, and loads the script and the library.
func fillBreadth(w *wire, size int) error {
	requests := [][]string{{"FLUSHALL"}, {"SCRIPT", "LOAD", breadthScript}, {"FUNCTION", "LOAD", "REPLACE", breadthLibrary},
		{"CONFIG", "SET", "slowlog-log-slower-than", "-1"}}
	for key := range breadthKeys {
		of := func(command, kind string, args ...string) {
			requests = append(requests, append([]string{command, fmt.Sprintf("base:%s:%d", kind, key)}, args...))
		}
		of("SET", "int", strconv.Itoa(key))
		of("SET", "str", strings.Repeat("0123456789", 10*size))
		for i := range size {
			n := strconv.Itoa(i)
			of("RPUSH", "list", "e:"+n)
			of("SADD", "set", "m:"+n)
			of("ZADD", "zset", n, "m:"+n)
			of("HSET", "hash", "f:"+n, []string{n, "value " + n}[i%2])
			of("XADD", "stream", n+"-2", "f", "value "+n)
			of("GEOADD", "geo", fmt.Sprintf("%.4f", 13+float64(i%100)/100), fmt.Sprintf("%.4f", 38+float64(i/100)/100), "m:"+n)
			of("PFADD", "hll", "m:"+n)
		}
		requests = append(requests, []string{"XGROUP", "CREATE", fmt.Sprintf("base:stream:%d", key), "group", "0"})
	}
	return w.all(requests)
}

// renewBreadth makes the keys for the forms again.
func renewBreadth(w *wire, kinds ...string) error {
	var requests [][]string
	for key := range breadthKeys {
		for _, kind := range kinds {
			requests = append(requests, []string{"COPY", fmt.Sprintf("base:%s:%d", kind, key), fmt.Sprintf("%s:%d", kind, key), "REPLACE"})
		}
		requests = append(requests, []string{"DEL", fmt.Sprintf("to:%d", key)})
	}
	return w.all(requests)
}
