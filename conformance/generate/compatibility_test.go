// What docs/COMPATIBILITY.md rests on: the stored names are a real server's, what the notes say can be seen, and the page
// is what would be generated now.
package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

func TestMain(m *testing.M) { peer.Main(m) }

// The stored names are those of a real Redis.
func TestNames(t *testing.T) {
	list, err := peer.Redis(t, false).Dial(t).Do("COMMAND", "LIST")
	if err != nil || list.IsError() {
		t.Fatal(list, err)
	}
	var want, got []string
	for _, name := range list.Items {
		want = append(want, strings.ToLower(name.Text))
	}
	groups, err := readNames(redisNames)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		got = append(got, g.commands...)
	}
	slices.Sort(want)
	slices.Sort(got)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is a command of Redis, and not in redis-8.0.6.txt", name)
		}
	}
	for i, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s is in redis-8.0.6.txt, and no command of Redis", name)
		}
		if i > 0 && got[i-1] == name {
			t.Errorf("%s is in redis-8.0.6.txt twice", name)
		}
	}
	if len(want) < 300 {
		t.Errorf("Redis has %d commands", len(want))
	}
}

// What limitkv replies shows that each note is still true.
func TestNotes(t *testing.T) {
	notes, err := readNotes(redisNotes)
	if err != nil {
		t.Fatal(err)
	}
	alone, cluster := peer.LimitKV(t), peer.LimitKV(t, "--cluster-enabled", "yes")
	asked := 0
	for name, n := range notes {
		if n.probe == "" {
			continue
		}
		asked++
		server := alone
		if strings.HasPrefix(name, "cluster|") {
			server = cluster
		}
		args, err := recorded.Split(n.probe)
		if err != nil {
			t.Fatal(err)
		}
		v, err := server.Dial(t).Do(args...)
		if err != nil {
			t.Errorf("%s: %s: %v", name, n.probe, err)
		} else if got := wire(v); !strings.HasPrefix(got, n.reply) {
			t.Errorf("%s: %q is no longer true\n  %s\n  want %s…\n  got  %s", name, n.text, n.probe, n.reply, got)
		}
	}
	if asked < 10 {
		t.Errorf("only %d notes were tried", asked)
	}
}

// wire is how a reply begins in RESP2: an error, a status, an integer, or a number of items.
func wire(v peer.Value) string {
	if v.Kind == '*' && len(v.Items) == 0 && !v.Null {
		return "*0"
	}
	return string(v.Kind) + v.Text
}

// writtenPage is docs/COMPATIBILITY.md.
func writtenPage(t *testing.T) string {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "COMPATIBILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The page is what would be generated now.
func TestPage(t *testing.T) {
	_, want, err := fromServer()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(writtenPage(t), want) {
		t.Error("docs/COMPATIBILITY.md is not what make generate writes")
	}
}

// What the notes cannot say is refused.
func TestCompatibilityErrors(t *testing.T) {
	groups := []group{{"string", []string{"get", "set"}}}
	has := map[string]entry{"get": {}}
	set := note{answer: no, text: "why"}
	for _, test := range []struct {
		name  string
		notes map[string]note
		wrong bool
	}{
		{"a missing command without a note", map[string]note{}, true},
		{"a missing command that is partly there", map[string]note{"set": {answer: partly}}, true},
		{"a note of no command", map[string]note{"set": set, "sett": set}, true},
		{"as it should be", map[string]note{"set": set}, false},
		{"as it should be, for the group", map[string]note{"string:": set}, false},
	} {
		if _, err := compatibility(groups, test.notes, has, has); (err != nil) != test.wrong {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for _, line := range []string{"get\tno", "get\tmaybe\twhy", "get\tno\twhy\tGET k", "get\tno\ta\nget\tno\tb"} {
		if _, err := readNotes(line); err == nil {
			t.Errorf("%q is taken for a note", line)
		}
	}
	if _, err := readNames("get"); err == nil {
		t.Error("a name before the first group is taken")
	}
}
