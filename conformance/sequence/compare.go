// When two replies to a random command count as equal. Equality is the rule; the exceptions are what Redis leaves open
// and what the clock changes.

package sequence

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// orderedWhenPacked are the commands whose elements come in the order of adding while the value is packed, and in any
// order when it is a hash table. Their steps come with a guard.
var orderedWhenPacked = map[string]bool{"HGETALL": true, "HKEYS": true, "HVALS": true, "SMEMBERS": true}

// packedEncodings are the encodings whose order is fixed. A listpackex is ordered by deadlines, not by what a client
// did, and Redis promises no order, so it is not among them.
// Nor is a packed set's order: that of SINTERSTORE and its like comes from the hash tables that it read.
var packedEncodings = map[string]bool{"listpack": true, "intset": true}

// comparers are the commands that are not compared byte for byte.
var comparers = map[string]func(want, got peer.Value, args []string) bool{
	"TTL":          rule(peer.Rule{Near: 3}),
	"PTTL":         rule(peer.Rule{Near: 3000}),
	"EXPIRETIME":   rule(peer.Rule{Near: 3}),
	"PEXPIRETIME":  rule(peer.Rule{Near: 3000}),
	"HTTL":         rule(peer.Rule{Near: 3}),
	"HPTTL":        rule(peer.Rule{Near: 3000}),
	"HEXPIRETIME":  rule(peer.Rule{Near: 3}),
	"HPEXPIRETIME": rule(peer.Rule{Near: 3000}),
	"HRANDFIELD":   rule(peer.Rule{Shape: true}),
	"ZRANDMEMBER":  rule(peer.Rule{Shape: true}),
	"SRANDMEMBER":  rule(peer.Rule{Shape: true}),
	"KEYS":         rule(peer.Rule{Unordered: 1}),
	"SINTER":       rule(peer.Rule{Unordered: 1}),
	"SUNION":       rule(peer.Rule{Unordered: 1}),
	"SDIFF":        rule(peer.Rule{Unordered: 1}),
	"SCAN":         scanned,
	"HSCAN":        scanned,
	"SSCAN":        scanned,
	"ZSCAN":        scanned,
	"SORT":         sorted,
	"DBSIZE":       counted,
	"EVAL":         evaluated,
}

func rule(r peer.Rule) func(want, got peer.Value, args []string) bool {
	return func(want, got peer.Value, _ []string) bool { return r.Match(want, got) }
}

// scanned compares a scan that asked for everything at once: the same elements in any order. Where one of the servers
// needs another call, there is nothing to compare.
func scanned(want, got peer.Value, args []string) bool {
	if want.Equal(got) {
		return true
	}
	if len(want.Items) != 2 || len(got.Items) != 2 {
		return false
	}
	cursor := 2
	if strings.EqualFold(args[0], "SCAN") {
		cursor = 1
	}
	if args[cursor] != "0" {
		return true // A cursor that nobody gave out means what the server makes of it.
	}
	if want.Items[0].Text != "0" || got.Items[0].Text != "0" {
		return true
	}
	group := 1
	if name := strings.ToUpper(args[0]); name == "ZSCAN" || name == "HSCAN" && !contains(args, "NOVALUES") {
		group = 2
	}
	return peer.Rule{Unordered: group}.Match(want.Items[1], got.Items[1])
}

// sorted compares SORT. Equal elements, and BY nosort of a set, may come in any order.
func sorted(want, got peer.Value, args []string) bool {
	if want.Equal(got) {
		return true
	}
	return contains(args, "nosort") && !contains(args, "LIMIT") && peer.Rule{Unordered: 1}.Match(want, got)
}

// address is what a table or function is as text.
var address = regexp.MustCompile(`(table|function|userdata|thread): (builtin: )?0x[0-9a-f]+`)

// evaluated compares what a script returned, but for addresses.
func evaluated(want, got peer.Value, _ []string) bool {
	return want.Equal(got) || address.ReplaceAllString(want.String(), "$1") == address.ReplaceAllString(got.String(), "$1")
}

// counted compares DBSIZE. Redis counts what has expired until it comes round to removing it.
func counted(want, got peer.Value, _ []string) bool {
	if want.Equal(got) {
		return true
	}
	n, err1 := strconv.Atoi(want.Text)
	m, err2 := strconv.Atoi(got.Text)
	return err1 == nil && err2 == nil && want.Kind == got.Kind && m < n
}

func contains(args []string, word string) bool {
	for _, a := range args {
		if strings.EqualFold(a, word) {
			return true
		}
	}
	return false
}

// same says whether two replies to a step count as equal. guard is the encoding that Redis named just before, or "".
func same(step Step, guard string, want, got peer.Value) bool {
	if want.Equal(got) {
		return true
	}
	name := strings.ToUpper(step.Args[0])
	if compare := comparers[name]; compare != nil {
		return compare(want, got, step.Args)
	}
	if orderedWhenPacked[name] && !packedEncodings[guard] || name == "SMEMBERS" && guard != "intset" {
		group := 1
		if name == "HGETALL" {
			group = 2
		}
		return peer.Rule{Unordered: group}.Match(want, got)
	}
	return explained(step, want, got) != ""
}

// Allowed is a difference that stays, and why.
type Allowed struct {
	Command string // the command's name, "" for any
	Reason  string
	Match   func(args []string, want, got peer.Value) bool
}

// AllowList holds every difference that is known and stays. It is empty where there is none.
var AllowList []Allowed

// explained is the reason why a difference is allowed, "" where it is not.
func explained(step Step, want, got peer.Value) string {
	for _, a := range AllowList {
		if (a.Command == "" || strings.EqualFold(a.Command, step.Args[0])) && a.Match(step.Args, want, got) {
			return a.Reason
		}
	}
	return ""
}
