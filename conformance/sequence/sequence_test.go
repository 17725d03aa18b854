// The generator makes what its templates say, the same for the same seed, and enough of it.
package sequence

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestTemplates(t *testing.T) {
	g := &generator{rand.New(rand.NewPCG(1, 2))}
	seen := map[string]bool{}
	n := parse("A [B|C D] (E|F) {G}")
	for range 500 {
		seen[strings.Join(n.expand(g, nil), " ")] = true
	}
	for _, want := range []string{"A E G", "A F G G G G", "A B E G", "A C D F G G"} {
		if !seen[want] {
			t.Errorf("%q was never made", want)
		}
	}
	if len(seen) != 3*2*4 {
		t.Errorf("%d different commands, want 24", len(seen))
	}
	for _, bad := range []string{"A [B", "A <nosuch>", "A | B", "A )"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("template %q was accepted", bad)
				}
			}()
			parse(bad)
		}()
	}
}

func TestRounds(t *testing.T) {
	for _, f := range Families {
		a, b := f.Round(7, 500), f.Round(7, 500)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: the same seed makes different rounds", f.Name)
		}
		if reflect.DeepEqual(a, f.Round(8, 500)) {
			t.Errorf("%s: another seed makes the same round", f.Name)
		}
		different := map[string]bool{}
		for _, s := range a {
			different[strings.Join(s.Args, " ")] = true
		}
		if len(a) < 500 || len(different) < 200 {
			t.Errorf("%s: %d steps, %d different ones", f.Name, len(a), len(different))
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		command, guard, want, got string
		same                      bool
	}{
		{"GET k", "", `"a"`, `"b"`, false},
		{"HKEYS h", "listpack", `["a", "b"]`, `["b", "a"]`, false},
		{"HKEYS h", "hashtable", `["a", "b"]`, `["b", "a"]`, true},
		{"HGETALL h", "hashtable", `["a", "1", "b", "2"]`, `["b", "1", "a", "2"]`, false},
		{"HSCAN h 0", "", `["0", ["a", "1", "b", "2"]]`, `["0", ["b", "2", "a", "1"]]`, true},
		{"HSCAN h 0", "", `["0", ["a", "1"]]`, `["0", ["a", "2"]]`, false},
		{"HSCAN h 0 NOVALUES", "", `["0", ["a", "b"]]`, `["0", ["b", "a"]]`, true},
		{"TTL k", "", ":100", ":99", true},
		{"TTL k", "", ":100", ":-1", false},
	} {
		want, err1 := peer.ParseValue(c.want)
		got, err2 := peer.ParseValue(c.got)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if same(Step{Args: strings.Fields(c.command)}, c.guard, want, got) != c.same {
			t.Errorf("%s: %s and %s: want %v", c.command, c.want, c.got, c.same)
		}
	}
}
