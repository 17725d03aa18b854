// The command table: what COMMAND says of each command must be what the real Redis says, since clients route by it:
// arity, flags, where the keys are, ACL categories, subcommands.
package conformance

import (
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The fields of a command in the reply of COMMAND.
const (
	fieldName = iota
	fieldArity
	fieldFlags
	fieldFirstKey
	fieldLastKey
	fieldStep
	fieldCategories
	fieldTips
	fieldKeySpecs
	fieldSubcommands
	fieldCount
)

// ownPrefixes begin the names of limitkv's own commands, which Redis does not have.
var ownPrefixes = []string{"rl.", "dq.", "lk.", "lkv.", "cl.throttle", "gcra", "increx", "script|info", "script|show"}

// tableDifferences are fields that differ on purpose: command and field, and why.
var tableDifferences = map[string]string{
	"client|kill arguments": "its oldest form is marked as deprecated, which no other argument is",
}

func TestCommandTable(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	want, got := table(t, oracle), table(t, tested)
	compared, missing := 0, map[string]bool{}
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			missing[name] = true
			continue
		}
		compared++
		for _, f := range []struct {
			index int
			name  string
			rule  peer.Rule
		}{
			{fieldArity, "arity", peer.Rule{}}, {fieldFlags, "flags", peer.Rule{Unordered: 1}}, {fieldFirstKey, "first key", peer.Rule{}},
			{fieldLastKey, "last key", peer.Rule{}}, {fieldStep, "step", peer.Rule{}}, {fieldCategories, "ACL categories", peer.Rule{Unordered: 1}},
			{fieldKeySpecs, "key specs", peer.Rule{}},
		} {
			if tableDifferences[name+" "+f.name] == "" && !f.rule.Match(w.Items[f.index], g.Items[f.index]) {
				t.Errorf("%s: %s\n  want %v\n  got  %v", name, f.name, w.Items[f.index], g.Items[f.index])
			}
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && !slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			t.Errorf("%s is no command of Redis", name)
		}
	}
	var names []string
	for name := range missing {
		names = append(names, name)
	}
	sort.Strings(names)
	t.Logf("%d of Redis's %d commands and subcommands are here; missing: %s", compared, len(want), strings.Join(names, " "))
	if compared < 100 {
		t.Errorf("only %d commands were compared", compared)
	}
}

// ownCategories are the ACL categories that Redis does not have.
var ownCategories = []string{"ratelimit", "delayqueue", "lock"}

// The ACL categories are Redis's, in its order, and limitkv's own after them.
func TestACLCategories(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	categories := func(s *peer.Server) (names []string) {
		v, err := s.Dial(t).Do("ACL", "CAT")
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range v.Items {
			names = append(names, item.Text)
		}
		return names
	}
	want, got := categories(oracle), categories(tested)
	if len(want) < 10 || !slices.Equal(append(want, ownCategories...), got) {
		t.Errorf("ACL CAT\n  want %v\n  got  %v", want, got)
	}
}

// withoutNotes drops the prose of a key spec, which is Redis's own.
func withoutNotes(spec peer.Value) peer.Value {
	for i := 0; i+1 < len(spec.Items); i += 2 {
		if spec.Items[i].Text == "notes" {
			spec.Items = slices.Delete(spec.Items, i, i+2)
		}
	}
	return spec
}

// table reads COMMAND and returns the entries by name, subcommands as "parent|sub".
func table(t *testing.T, s *peer.Server) map[string]peer.Value {
	t.Helper()
	v, err := s.Dial(t).Do("COMMAND")
	if err != nil || v.IsError() {
		t.Fatalf("%s: COMMAND: %v %v", s.Name, v, err)
	}
	out := map[string]peer.Value{}
	var add func(entries []peer.Value)
	add = func(entries []peer.Value) {
		for _, e := range entries {
			if len(e.Items) != fieldCount {
				t.Fatalf("%s: COMMAND: an entry of %d fields: %v", s.Name, len(e.Items), e)
			}
			for i, spec := range e.Items[fieldKeySpecs].Items {
				e.Items[fieldKeySpecs].Items[i] = withoutNotes(spec)
			}
			out[e.Items[fieldName].Text] = e
			add(e.Items[fieldSubcommands].Items)
		}
	}
	add(v.Items)
	return out
}
