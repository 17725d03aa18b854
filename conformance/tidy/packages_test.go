package tidy

// What a package is for: one file says it, above its package clause, and says at once where others are not to import it. A package that they may import shows by an Example how.

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// internal is how a package says that nothing but this program is made with it.
var internal = regexp.MustCompile(`^Package \w+, internal to the (server|server's tests|gateway), `)

func TestPackageComments(t *testing.T) {
	_, sources := tree(t)
	type pkg struct {
		name     string
		comments []string
		examples int
	}
	packages := map[string]*pkg{}
	for _, s := range sources {
		if within(s.dir(), "examples") || strings.Contains(s.path, "testdata/") {
			continue // These are read, and not imported.
		}
		p := packages[s.dir()]
		if p == nil {
			p = &pkg{}
			packages[s.dir()] = p
		}
		if !s.test() {
			p.name = s.file.Name.Name
			if s.file.Doc != nil {
				p.comments = append(p.comments, s.file.Doc.Text())
			}
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
				p.examples++
			}
		}
	}
	examples, internals := 0, 0
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		if p.name == "" {
			continue // Tests alone.
		}
		if len(p.comments) != 1 {
			t.Errorf("%s has %d package comments: %.60q", dir, len(p.comments), p.comments)
			continue
		}
		text := strings.ReplaceAll(p.comments[0], "\n", " ")
		kind, name := "Package ", p.name
		if p.name == "main" {
			kind, name = "Command ", path.Base(dir)
		}
		says := internal.MatchString(text)
		switch rest, begins := strings.CutPrefix(text, kind+name); {
		case !begins || !strings.HasPrefix(rest, " ") && !says:
			t.Errorf("%s begins with %.60q", dir, text)
		case name != p.name: // A command.
		case says && p.examples > 0:
			t.Errorf("%s says that it is internal, and has an Example", dir)
		case !says && p.examples == 0:
			t.Errorf("%s has no Example, and does not say at once that it is internal to the server", dir)
		case says:
			internals++
		default:
			examples++
		}
	}
	if examples < 2 || internals < 50 {
		t.Errorf("only %d packages with examples and %d internal ones were seen", examples, internals)
	}
}
