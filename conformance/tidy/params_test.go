// Parameters: --help, the documentation and the log of the start say which have an effect. Here the code says it: a parameter
// has one if something reads it.
package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// plainFile has the table of the parameters that are kept as they are given; those with a description there have an effect.
const plainFile = "commands/config/plain.go"

// shownOnly are parameters that are read, to be shown. What they set has no effect.
var shownOnly = map[string]string{
	"hz":                  "INFO shows it",
	"list-compress-depth": "DEBUG OBJECT shows nodes as compressed",
}

// declarers are the methods that declare a parameter and return where its value is, by their number of arguments.
var declarers = map[string]int{"Int": 5, "Memory": 5, "Bool": 3, "Text": 3, "Enum": 4, "MemoryOrShare": 2}

var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_-]+$`)

// plainRow is a row of the table.
type plainRow struct {
	names         []string
	does, refuses bool
}

// declared is a parameter that a family declares: the identifier that has its value is holder, in the package of a folder.
type declared struct {
	name, holder, dir, at string
	discarded             bool
}

// parameters is what the code of the server has to do with parameters.
type parameters struct {
	plain    []plainRow
	declared []declared
	// literals are where a text stands, apart from the table and from declarations.
	literals map[string][]string
	// uses counts an identifier in a folder where it is not just assigned to.
	uses map[[2]string]int
}

func readParameters(sources []source) *parameters {
	p := &parameters{literals: map[string][]string{}, uses: map[[2]string]int{}}
	for _, s := range sources {
		if s.test() || top(s.path) != "commands" && top(s.path) != "server" && !strings.HasPrefix(s.path, "cmd/limitkv/") {
			continue
		}
		if s.path == plainFile {
			p.table(s.file)
			continue
		}
		p.read(s)
	}
	return p
}

// table reads the rows of plainParams: calls of a maker, and methods of what it returns.
func (p *parameters) table(file *ast.File) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v, _ := spec.(*ast.ValueSpec)
			if v == nil || v.Names[0].Name != "plainParams" {
				continue
			}
			for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
				var row plainRow
				for call, ok := e.(*ast.CallExpr); ok; {
					method, is := call.Fun.(*ast.SelectorExpr)
					if !is {
						row.names = strings.Fields(text(call.Args[0]))
						break
					}
					row.does = row.does || method.Sel.Name == "does"
					row.refuses = row.refuses || method.Sel.Name == "just"
					call, ok = method.X.(*ast.CallExpr)
				}
				p.plain = append(p.plain, row)
			}
		}
	}
}

// text is what a literal says, empty if it is none.
func text(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(l.Value) // the parser has read it
	return s
}

func (p *parameters) read(s source) {
	assigned := map[*ast.Ident]bool{}
	named := map[ast.Expr]bool{} // literals that declare
	var stack []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if id := last(l); id != nil {
					assigned[id] = true
				}
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok {
				assigned[id] = true
				named[n.Value] = id.Name == "Name" || id.Name == "Alias"
			}
		case *ast.Field:
			for _, id := range n.Names {
				assigned[id] = true
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				break
			}
			if f.Sel.Name == "Alias" {
				named[n.Args[0]] = true
			}
			if declarers[f.Sel.Name] != len(n.Args) || !parameterName.MatchString(text(n.Args[0])) {
				break
			}
			named[n.Args[0]] = true
			d := declared{name: text(n.Args[0]), dir: s.dir(), at: s.path}
			switch parent := stack[len(stack)-1].(type) {
			case *ast.ExprStmt:
				d.discarded = true
			case *ast.AssignStmt:
				if i := slices.Index(parent.Rhs, ast.Expr(n)); i >= 0 && last(parent.Lhs[i]) != nil {
					d.holder = last(parent.Lhs[i]).Name
				}
			case *ast.KeyValueExpr:
				d.holder = last(parent.Key).Name
			}
			p.declared = append(p.declared, d)
		case *ast.Ident:
			if !assigned[n] {
				p.uses[[2]string{s.dir(), n.Name}]++
			}
		case *ast.BasicLit:
			if name := text(n); !named[n] && parameterName.MatchString(name) {
				p.literals[name] = append(p.literals[name], s.path)
			}
		}
		stack = append(stack, n)
		return true
	})
}

// last is the identifier that is assigned to.
func last(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	}
	return nil
}

// lies are what is said of parameters and is not so.
func (p *parameters) lies() (found []string) {
	owners := map[string]string{}
	for _, d := range p.declared {
		owners[d.name] = d.at
		read := p.uses[[2]string{d.dir, d.holder}] > 0
		for dir, n := range p.uses { // an exported field is read in other packages, too
			read = read || d.holder != "" && ast.IsExported(d.holder) && dir[1] == d.holder && n > 0
		}
		if d.discarded {
			read = slices.ContainsFunc(p.literals[d.name], func(at string) bool { return path.Dir(at) != d.dir })
		}
		if !read && (d.discarded || d.holder != "") {
			found = append(found, d.name+" is declared in "+d.at+" and read nowhere")
		}
	}
	for _, row := range p.plain {
		at := ""
		for _, name := range row.names {
			if owner := owners[name]; owner != "" {
				found = append(found, name+" is declared in "+owner+", too")
			}
			if all := p.literals[name]; len(all) > 0 {
				at = all[0]
			}
		}
		name := row.names[0]
		switch {
		case row.does && at == "":
			found = append(found, name+" is said to have an effect, and nothing reads it")
		case !row.does && !row.refuses && at != "" && shownOnly[name] == "":
			found = append(found, name+" is said to have no effect, and "+at+" reads it")
		case (row.does || at == "") && shownOnly[name] != "":
			found = append(found, name+" is said to be shown only")
		}
	}
	return found
}

func TestParametersWithEffect(t *testing.T) {
	_, sources := tree(t)
	p := readParameters(sources)
	if len(p.plain) < 80 || len(p.declared) < 60 {
		t.Fatalf("only %d and %d parameters were found", len(p.plain), len(p.declared))
	}
	for _, lie := range p.lies() {
		t.Error(lie)
	}
	// What is wrong is found: each of these is.
	p.plain = append(p.plain, plainRow{names: []string{"repl-timeout"}}, plainRow{names: []string{"no-such", "alias"}, does: true}, plainRow{names: []string{"swapdb"}})
	p.declared = append(p.declared, declared{name: "a", holder: "neverRead", dir: "commands", at: "a.go"}, declared{name: "b", dir: "commands", at: "b.go", discarded: true})
	wants := []string{
		"a is declared in a.go and read nowhere", "b is declared in b.go and read nowhere", "repl-timeout is declared in server/replication/node.go, too",
		"repl-timeout is said to have no effect, and server/replication/follow_load.go reads it", "no-such is said to have an effect, and nothing reads it",
		"swapdb is said to have no effect, and server/",
	}
	lies := p.lies()
	for _, want := range wants {
		if !slices.ContainsFunc(lies, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("not found: %s; but %q", want, lies)
		}
	}
}
