// Packages with their types, for rules that go by what a name means.
package tidy

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// unit is a package with its types.
type unit struct {
	path  string
	pkg   *types.Package
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// loader reads packages; what they import comes compiled.
type loader struct {
	root    string
	exports map[string]string // the compiled package of a path
	files   map[string][]string
}

// newLoader asks the go command for packages and all that they import.
func newLoader(t *testing.T, root string, patterns ...string) *loader {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, patterns...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	l := &loader{root: root, exports: map[string]string{}, files: map[string][]string{}}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		l.exports[p.ImportPath] = p.Export
		if rel, ours := strings.CutPrefix(p.ImportPath, module); ours {
			for _, f := range p.GoFiles {
				l.files[rel] = append(l.files[rel], filepath.Join(p.Dir, f))
			}
		}
	}
	return l
}

// check gives a package of some files its types.
func (l *loader) check(t *testing.T, path string, files []string) *unit {
	t.Helper()
	u := &unit{path: path, fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{},
	}}
	for _, name := range files {
		f, err := parser.ParseFile(u.fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		u.files = append(u.files, f)
	}
	conf := types.Config{Sizes: types.SizesFor("gc", runtime.GOARCH), Importer: importer.ForCompiler(u.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(l.exports[path])
	})}
	pkg, err := conf.Check(module+path, u.fset, u.files, u.info)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	u.pkg = pkg
	return u
}
