package tidy

// The Makefile as a newcomer meets it: few targets, each in a group and with a line of help, and nothing names one that is not there.

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// targetsMax is how many targets make help may show.
const targetsMax = 25

var (
	targets = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	groups  = regexp.MustCompile(`(?m)^([a-z]+):$`)
	helped  = regexp.MustCompile(`(?m)^  ([a-z-]+) +.{10}`)
	// calls are targets that a text names: in quotes, in a script or a block, or with a hyphen, which no other word behind "make" has.
	calls = regexp.MustCompile("(?m)(?:[`\"]|^|twice |step \"[a-z-]+\" )make ([a-z-]+)|make ([a-z]+-[a-z-]+)")
	// settings are the variables that a call or a line of help sets.
	settings = regexp.MustCompile(`make [a-z -]*\b([A-Z]+)=|(?m)^[a-z-]+:.*## .*?\b([A-Z][A-Z0-9_]+)=`)
)

func TestMakefile(t *testing.T) {
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	texts, _ := tree(t)
	makefile := texts["Makefile"]
	cmd := exec.Command("make", "--no-print-directory", "help")
	cmd.Dir = root
	help, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := found(groups, help); !slices.Equal(got, []string{"use", "develop", "measure"}) {
		t.Errorf("make help has the groups %q", got)
	}
	if !groups.Match(help[:strings.Index(string(help), "\n")+1]) {
		t.Error("make help shows targets before the first group")
	}
	shown, all := found(helped, help), found(targets, makefile)
	if !slices.Equal(shown, all) {
		t.Errorf("make help shows\n%q\nand there are\n%q", shown, all)
	}
	if len(shown) > targetsMax {
		t.Errorf("make help shows %d targets, the limit is %d: one with a variable serves for several", len(shown), targetsMax)
	}
	named, set := 0, 0
	for name, text := range texts {
		if name == "CHANGELOG.md" || path.Ext(name) != ".md" && path.Ext(name) != ".go" && name != ".ci/run" && name != "Makefile" {
			continue
		}
		for _, call := range found(calls, text) {
			named++
			if !slices.Contains(all, call) {
				t.Errorf("%s names make %s, which is no target", name, call)
			}
		}
		for _, setting := range found(settings, text) {
			set++
			if !regexp.MustCompile(`\$\(` + setting + `\)|ifdef ` + setting + `\n|^` + setting + ` *\?=`).Match(makefile) {
				t.Errorf("%s sets %s, which the Makefile does not read", name, setting)
			}
		}
	}
	if named < 20 || set < 10 {
		t.Errorf("only %d targets and %d settings are named", named, set)
	}
}

// found are the groups that a pattern finds, in order.
func found(pattern *regexp.Regexp, text []byte) (all []string) {
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		for _, group := range m[1:] {
			if len(group) > 0 {
				all = append(all, string(group))
			}
		}
	}
	return all
}
