// One gate: nothing changes the keyspace except through an engine.View, which is a transaction, and which the engine
// alone begins. What functions change is found out from their source (flow_test.go), not from a list of them.
package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// structures are the packages of values: they know nothing of keys, and all that they write is part of a value.
var structures = []string{"zset", "engine/list", "engine/hash", "engine/set", "engine/stream", "engine/limiter", "engine/lock", "engine/delayqueue", "engine/table", "engine/packed"}

// entries are the engine's types that keys consist of.
var entries = []string{"Entry", "header", "due", "objectEntry", "partedEntry", "bigString", "table", "segment"}

// shards are the engine's types that have keys: who changes keys by way of one of them does it to everybody's.
var shards = []string{"Keyspace", "shard", "shardState", "Snapshot", "savedShard", "Cut", "Scheduler"}

// outside are the functions that change keys with no View at hand.
var outside = map[string]string{
	"(*engine.Keyspace).Save":  "a copy for tests: the values stay as they are",
	"(*engine.Keyspace).unmix": "a mark of cuts, under all locks, before a cut begins",
	"commands/lkv.picturesOf":  "tests' look at all that there is: what it makes of a value is put in order",
	"commands/lkv.differ":      "the same",
}

// transactions are the files that have the beginnings and the ends of transactions.
var transactions = map[string]string{
	"engine/update.go":           "all but those of clients' commands",
	"engine/lock.go":             "the locks",
	"server/pipeline.go":         "a client's command",
	"server/long.go":             "one that takes long",
	"server/serve.go":            "locks that a command has left to the next one of its connection",
	"commands/scripting/long.go": "a script that lets go what it does not need",
}

// locking are the Keyspace's methods that take locks for a transaction, or let them go.
var locking = []string{"Lock", "LockWaiting", "Unlock", "Reserve"}

// beginners are the functions elsewhere that make a View, take locks or let them go.
var beginners = map[string]string{
	"(*engine.Scheduler).back": "the locks of several keyspaces at once",
	"(*engine.View).letGo":     "what was taken to serve somebody",
}

// handles are types of which a function that has one changes keys in a transaction: a View, or what has one inside.
func handles(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if named(t, "engine", "View") {
		return true
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		ft := f.Type()
		if f.Embedded() && handles(ft) {
			return true
		}
		if p, ok := ft.Underlying().(*types.Pointer); ok && isContext(p.Elem()) {
			return true // what a command keeps at hand while it runs
		}
	}
	return false
}

// isContext says whether a type is a View, or has one embedded.
func isContext(t types.Type) bool {
	if named(t, "engine", "View") {
		return true
	}
	s, ok := t.Underlying().(*types.Struct)
	return ok && slices.ContainsFunc(slices.Collect(s.Fields()), func(f *types.Var) bool {
		return f.Embedded() && named(f.Type(), "engine", "View")
	})
}

func isReader(t types.Type) bool { return named(t, "engine", "Reader") }

// packageOf is the package of a type of this module, "" for others.
func packageOf(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() != nil {
		return strings.TrimPrefix(n.Obj().Pkg().Path(), module)
	}
	return ""
}

func named(t types.Type, pkg string, names ...string) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == module+pkg && slices.Contains(names, n.Obj().Name())
}

// gate is the analysis of the tree.
type gate struct {
	*flow
	views map[*function]bool
}

func newGate() *gate {
	g := &gate{flow: &flow{known: map[string]*summary{}, byMethod: map[string][]*summary{}, empty: map[types.Object]bool{}}, views: map[*function]bool{}}
	g.counts = func(f *function, owner types.Type) bool {
		return slices.Contains(structures, f.unit.path) || slices.Contains(structures, packageOf(owner)) ||
			named(owner, "engine", entries...)
	}
	g.stops = func(f *function) bool { return g.views[f] || outside[f.name] != "" }
	return g
}

// see finds out which functions have a View at hand: as a parameter, or one that they make.
func (g *gate) see() {
	for _, f := range g.functions {
		has := slices.ContainsFunc(f.params, func(p types.Object) bool { return handles(p.Type()) })
		ast.Inspect(f.decl.Body, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CompositeLit:
				has = has || isContext(f.unit.info.TypeOf(x))
			case *ast.FuncLit:
				for _, p := range x.Type.Params.List {
					has = has || handles(f.unit.info.TypeOf(p.Type))
				}
			}
			return true
		})
		g.views[f] = has
	}
}

// violation is a place that breaks the rule.
type violation struct{ at, text string }

func (v violation) String() string { return v.at + ": " + v.text }

func (g *gate) violations(root string) (found []violation, changes int) {
	used := map[string]bool{}
	for _, f := range g.functions {
		say := func(e event, why string) {
			v := violation{f.at(e.pos, root), fmt.Sprintf("%s: %s changes a value %s", f.name, e.what, why)}
			if !slices.Contains(found, v) {
				found = append(found, v)
			}
		}
		if slices.Contains(structures, f.unit.path) {
			continue
		}
		for _, e := range f.events {
			changes++
			switch {
			case e.apart:
				say(e, "at another time, when the locks may be gone")
			case g.views[f] && e.place.param != shown:
			case outside[f.name] != "":
				used[f.name] = true
			case e.place.param == shown:
				say(e, "that is only shown")
			case e.place.param == global:
				say(e, "that is everybody's, and no transaction is at hand")
			case named(f.params[e.place.param].Type(), "engine", shards...):
				say(e, "of the keyspace, and no transaction is at hand")
			}
		}
		found = append(found, g.passedOn(f, root)...)
		found = append(found, g.made(f, root, used)...)
	}
	for _, list := range []map[string]string{outside, beginners, transactions} {
		for name := range list {
			if !used[name] {
				found = append(found, violation{"gate_test.go", name + " is no exception any more"})
			}
		}
	}
	return found, changes
}

// passedOn finds functions that change what they are given and are used as values where no transaction is at hand: nobody
// sees who calls them.
func (g *gate) passedOn(f *function, root string) (found []violation) {
	if g.views[f] {
		return nil
	}
	called := map[*ast.Ident]bool{}
	ast.Inspect(f.decl.Body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			switch fun := ast.Unparen(x.Fun).(type) {
			case *ast.Ident:
				called[fun] = true
			case *ast.SelectorExpr:
				called[fun.Sel] = true
			}
		case *ast.Ident:
			callee, ok := f.unit.info.Uses[x].(*types.Func)
			if !ok || called[x] {
				return true
			}
			if s := g.summaryOf(callee); s != nil && slices.ContainsFunc(s.changes, func(c change) bool { return c != 0 }) {
				found = append(found, violation{f.at(x.Pos(), root), f.name + ": " + callee.Name() + ", which changes what it is given, is passed on with no transaction at hand"})
			}
		}
		return true
	})
	return found
}

// made finds transactions that are begun elsewhere than where they have their end: Views that are made – a zero View is none,
// as it has no keyspace – and locks that are taken.
func (g *gate) made(f *function, root string, used map[string]bool) (found []violation) {
	ast.Inspect(f.decl.Body, func(n ast.Node) bool {
		what := ""
		switch x := n.(type) {
		case *ast.CompositeLit:
			if len(x.Elts) > 0 && named(f.unit.info.TypeOf(x), "engine", "View") {
				what = "a transaction is begun"
			}
		case *ast.SelectorExpr:
			if slices.Contains(locking, x.Sel.Name) && named(f.unit.info.TypeOf(x.X), "engine", "Keyspace") {
				what = "locks are taken or let go"
			}
		}
		if what == "" {
			return true
		}
		at := f.at(n.Pos(), root)
		file, _, _ := strings.Cut(at, ":")
		switch {
		case transactions[file] != "":
			used[file] = true
		case beginners[f.name] != "":
			used[f.name] = true
		default:
			found = append(found, violation{at, f.name + ": " + what})
		}
		return true
	})
	return found
}

// load adds the tree's packages, with more files for some of them.
func (g *gate) load(t *testing.T, more map[string][]string) (root string) {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, root, "./commands/...", "./engine/...", "./server/...", "./zset")
	for path, files := range more {
		l.files[path] = append(l.files[path], files...)
	}
	for path, files := range l.files {
		switch top(path) {
		case "zset", "engine", "commands", "server", "planted":
			g.add(l.check(t, path, files))
		}
	}
	g.see()
	g.run()
	return root
}

// planted are files that go round the gate, added to a package of the tree or a package of their own. They show that the
// rule finds something.
var planted = map[string]string{"planted": "testdata/planted", "engine": "testdata/engine"}

func TestOneGate(t *testing.T) {
	var files []string
	more := map[string][]string{}
	for path, dir := range planted {
		dir, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		more[path], _ = filepath.Glob(filepath.Join(dir, "*.go"))
		files = append(files, more[path]...)
	}
	g := newGate()
	root := g.load(t, more)
	found, changes := g.violations(root)
	for _, v := range found {
		if !strings.Contains(v.at, "testdata/") {
			t.Error(v)
		}
	}
	if changes < 250 {
		t.Errorf("only %d places were found that change values", changes)
	}
	for _, name := range []string{"(*zset.Set).Add", "(*engine/list.List).Push", "(*engine/stream.Group).Ack", "(*engine/delayqueue.Queue).Pop", "engine/limiter.Take",
		"engine/limiter.CountRefused", "(*engine.table).insert", "(engine.Entry).SetLastAccess", "(*engine/hash.Hash).Set", "(*engine/set.Set).Add"} {
		if s := g.known[name]; s == nil || s.changes[0] == 0 {
			t.Errorf("%s is not seen to change anything", name)
		}
	}
	for _, name := range []string{"(*zset.Set).Len", "(*zset.Set).Score", "(*engine/list.List).Len", "(engine.Entry).Bytes", "(*engine/stream.Stream).Len", "(*engine/hash.Hash).Get"} {
		if s := g.known[name]; s == nil || s.changes[0] != 0 {
			t.Errorf("%s is said to change something", name)
		}
	}
	t.Logf("%d places change values", changes)
	wants := 0
	for _, name := range files {
		n, err := compare(name, root, found, t.Errorf)
		if err != nil {
			t.Fatal(err)
		}
		wants += n
	}
	if wants < 10 {
		t.Errorf("only %d violations are planted", wants)
	}
}

// wanted marks a line of the planted files that is to be found.
var wanted = regexp.MustCompile(`// want "(.*)"`)

// compare looks whether each line of a planted file that is to be found was found, and no other one.
func compare(name, root string, found []violation, fail func(format string, args ...any)) (wants int, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return 0, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		at := fmt.Sprintf("%s:%d", filepath.ToSlash(rel), i+1)
		var texts []string
		for _, v := range found {
			if v.at == at {
				texts = append(texts, v.text)
			}
		}
		m := wanted.FindStringSubmatch(line)
		switch {
		case m == nil && len(texts) > 0:
			fail("%s: %s", at, texts)
		case m != nil:
			wants++
			if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, m[1]) }) {
				fail("%s: not found: %s; but %q", at, m[1], texts)
			}
		}
	}
	return wants, nil
}
