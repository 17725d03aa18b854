// Package tidy holds the rules of the tree that a compiler does not check: who may import whom, how long a file may
// be, that each opens by saying what it is, where time and randomness come from. A rule broken names the file and line.
package tidy

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

const module = "github.com/limitkv/limitkv/"

// linesMax is how long a Go file that people write may be. Past that it is two subjects.
const linesMax = 600

// mayImport is DESIGN's picture: a folder and the folders of this module that it may import, by the longest prefix. A
// folder may always import what is below itself, families excepted (below). A folder of commands that has a row of its
// own is no family: it is what families stand on, in layers.
var mayImport = map[string][]string{
	"cmd":         {"commands", "engine", "luavm", "resp", "server"},
	"resp":        {},
	"zset":        {},
	"engine":      {"resp/words", "zset"},
	"luavm":       {"resp"},
	"replication": {"engine/journal", "resp"},
	"web":         {"resp"},
	"rls":         {"limitkvtest", "rls", "conformance/peer"},
	"loadgen":     {"commands", "server"},
	"commands":    {"commands", "engine", "luavm", "resp", "server", "web", "zset"},

	"server": {"server", "engine", "replication", "resp", "web", "zset"},

	"commands/budget": {"server/command", "engine"},
	"server/command": {"server/hashslot", "server/histogram", "server/longrun", "server/notation", "server/params",
		"server/pause", "server/prefix", "engine", "resp"},
	"server/dumpfile":      {"server/command", "engine", "replication"},
	"server/glob":          {},
	"server/hashslot":      {"engine"},
	"server/histogram":     {},
	"server/longrun":       {"engine"},
	"server/notation":      {},
	"server/params":        {"engine", "resp/number", "resp/words", "zset"},
	"commands/partialsort": {},
	"server/pause":         {"engine", "resp"},
	"server/persistence":   {"server/command", "server/dumpfile", "server/params", "server/pause", "engine", "replication", "resp", "zset"},
	"server/prefix":        {"server/histogram"},
	"server/replication": {"server/clients", "server/command", "server/dumpfile", "server/params", "server/pause", "server/persistence",
		"engine", "replication", "resp"},
	"commands/scan":     {"server/command", "server/glob", "resp"},
	"server/value":      {"engine", "zset"},
	"conformance":       {"resp"},
	"conformance/files": {"engine"},

	"conformance/tidy/testdata": {"commands", "engine", "server", "zset"},
	"limitkvtest":               {"commands", "server"},
}

// forbiddenNames are package names that say nothing of what is inside.
var forbiddenNames = []string{"util", "utils", "common", "helpers", "misc", "base"}

// readsTime are the folders and files that may ask the system for the time: the engine's clock, and programs and tests,
// which measure rather than decide. A link to a primary is given up after a silence, which is the network's and no key's.
// The load generator and the gateway for Envoy are programs in modules of their own.
var readsTime = []string{"engine/clock.go", "replication/link.go", "cmd/", "conformance/", "commands/livetest/", "loadgen/", "rls/"}

// source is one tracked Go file, parsed.
type source struct {
	path string // with slashes, from the module's root
	text []byte
	file *ast.File
	fset *token.FileSet
}

func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) dir() string     { return filepath.ToSlash(filepath.Dir(s.path)) }
func (s source) generated() bool { return ast.IsGenerated(s.file) }
func (s source) at(p token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(p).Line)
}

// tracked lists the files that git knows, or all files where the tree is no checkout.
func tracked(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		return strings.Fields(string(out))
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// tree reads every tracked file, and parses the Go files.
func tree(t *testing.T) (texts map[string][]byte, sources []source) {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string][]byte{}
	for _, path := range tracked(t, root) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if os.IsNotExist(err) {
			continue // Deleted, and not committed yet.
		}
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = text
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source{path, text, file, fset})
	}
	if len(sources) < 5 {
		t.Fatalf("only %d Go files were found", len(sources))
	}
	return texts, sources
}

func TestImports(t *testing.T) {
	_, sources := tree(t)
	checked := 0
	for _, s := range sources {
		from := s.dir()
		allowed, known := allowedFrom(from)
		for _, imp := range s.file.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			to, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			checked++
			if !known {
				continue // A folder that DESIGN does not name, such as a test helper, may import what it tests.
			}
			if fromFamily, toFamily := family(from), family(to); fromFamily != "" && toFamily != "" && fromFamily != toFamily && !s.test() {
				t.Errorf("%s: family %s imports family %s", s.at(imp.Pos()), fromFamily, toFamily)
			}
			if s.test() && top(from) == "server" && within(to, "commands") {
				continue // tests of the server want it with its commands
			}
			if within(to, from) || within(to, top(from)) && top(from) != "commands" && top(from) != "server" {
				continue
			}
			if !slices.ContainsFunc(allowed, func(a string) bool { return within(to, a) }) {
				t.Errorf("%s: %s may not import %s", s.at(imp.Pos()), from, to)
			}
		}
	}
	if checked == 0 {
		t.Error("no import within the module was seen")
	}
}

// allowedFrom is the row of mayImport for a folder: that of its longest prefix.
func allowedFrom(dir string) (allowed []string, known bool) {
	for d := dir; d != "."; d = filepath.ToSlash(filepath.Dir(d)) {
		if a, ok := mayImport[d]; ok {
			return a, true
		}
	}
	return nil, false
}

func within(dir, of string) bool { return dir == of || strings.HasPrefix(dir, of+"/") }

func top(dir string) string {
	head, _, _ := strings.Cut(dir, "/")
	return head
}

// family is the command family that a folder belongs to, "" for none.
func family(dir string) string {
	rest, ok := strings.CutPrefix(dir, "commands/")
	if _, layer := mayImport["commands/"+top(rest)]; !ok || layer {
		return ""
	}
	return top(rest)
}

func TestFiles(t *testing.T) {
	_, sources := tree(t)
	for _, s := range sources {
		if n := bytes.Count(s.text, []byte("\n")); n > linesMax && !s.generated() {
			t.Errorf("%s has %d lines, the limit is %d: split it by noun", s.path, n, linesMax)
		}
		if first := firstComment(s); first == "" && !s.generated() {
			t.Errorf("%s does not open with a comment that says what it is", s.path)
		}
		if slices.Contains(forbiddenNames, strings.TrimSuffix(s.file.Name.Name, "_test")) {
			t.Errorf("%s: package %s says nothing of what is inside", s.path, s.file.Name.Name)
		}
	}
}

// firstComment is the text of the comment that a file opens with: before the package clause, behind it, or that of its
// first declaration where that is what the file is about. A build constraint is none.
func firstComment(s source) string {
	next := token.Pos(len(s.text) + 1)
	for _, decl := range s.file.Decls {
		if gen, ok := decl.(*ast.GenDecl); !ok || gen.Tok != token.IMPORT {
			next = decl.Pos()
			break
		}
	}
	for _, group := range s.file.Comments {
		if text := group.Text(); text != "" && group.Pos() < next {
			return text
		}
	}
	return ""
}

func TestTimeAndRandomness(t *testing.T) {
	_, sources := tree(t)
	clocks := 0
	for _, s := range sources {
		if s.test() {
			continue
		}
		mayRead := slices.ContainsFunc(readsTime, func(p string) bool { return strings.HasPrefix(s.path, p) })
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || pkg.Obj != nil {
				return true
			}
			name := pkg.Name + "." + sel.Sel.Name
			switch {
			case name == "time.Now" || name == "time.Since" || name == "time.Until":
				clocks++
				if !mayRead {
					t.Errorf("%s: %s: time comes in as a parameter; %s alone reads the clock", s.at(n.Pos()), name, readsTime[0])
				}
			case pkg.Name == "debug" && strings.HasPrefix(sel.Sel.Name, "Set") && !strings.HasPrefix(s.path, "cmd/"):
				t.Errorf("%s: %s: the runtime's settings are the process's, so those of a program that has a server inside; cmd sets them", s.at(n.Pos()), name)
			case pkg.Name == "rand" && !strings.HasPrefix(sel.Sel.Name, "New") && ast.IsExported(sel.Sel.Name) && imports(s, "math/rand") && lower(sel.Sel.Name):
				t.Errorf("%s: %s: randomness comes in as a parameter", s.at(n.Pos()), name)
			}
			return true
		})
	}
	if clocks == 0 {
		t.Error("nothing reads the time, which cannot be")
	}
}

// lower says whether a name of math/rand is one of its functions on the global source, not a type.
func lower(name string) bool {
	return !slices.Contains([]string{"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}, name)
}

func imports(s source, prefix string) bool {
	return slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool {
		path, _ := strconv.Unquote(i.Path.Value)
		return strings.HasPrefix(path, prefix)
	})
}

// machine matches folders that exist on somebody's machine only.
var machine = regexp.MustCompile(`(^|[^\w./~-])/(root|home/\w+|Users/\w+|work)/`)

// TestNoMachine looks for what belongs to the machine that a file was written on: its folders, its package mirrors.
func TestNoMachine(t *testing.T) {
	texts, _ := tree(t)
	var hosts []string
	for _, name := range []string{"GOPROXY", "HTTP_PROXY", "HTTPS_PROXY", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY"} {
		for _, part := range strings.FieldsFunc(setting(name), func(r rune) bool { return r == ',' || r == '|' }) {
			if u, err := url.Parse(part); err == nil && u.Hostname() != "" && u.Hostname() != "proxy.golang.org" {
				hosts = append(hosts, u.Hostname())
			}
		}
	}
	for path, text := range texts {
		for i, line := range strings.Split(string(text), "\n") {
			if m := machine.FindString(line); m != "" && !strings.HasSuffix(path, "tidy_test.go") {
				t.Errorf("%s:%d: a folder of one machine: %s", path, i+1, strings.TrimSpace(m))
			}
			for _, host := range hosts {
				if strings.Contains(line, host) {
					t.Errorf("%s:%d: a host of one machine", path, i+1)
				}
			}
		}
	}
}

// setting is an environment variable, or what the go command knows of that name.
func setting(name string) string {
	if v := os.Getenv(name); v != "" || !strings.HasPrefix(name, "GO") {
		return v
	}
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TestNothingLeft: no server that a test or a target started has left its files in the tree.
func TestNothingLeft(t *testing.T) {
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a test that runs now
		}
		if err != nil {
			return err
		}
		looked++
		name := d.Name()
		switch {
		case d.IsDir() && (name == ".git" || name == "bin" || name == ".cache" || name == "testdata"):
			return filepath.SkipDir
		case name == "appendonlydir", strings.HasSuffix(name, ".rdb"), strings.HasSuffix(name, ".aof"):
			t.Errorf("%s: a server's file; give the server another directory, or --save \"\"", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 100 {
		t.Errorf("only %d names were looked at", looked)
	}
}
