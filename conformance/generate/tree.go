// The walk through the tree in docs/TREE.md: each package with what it says of itself, and below it each file
// with the first sentence of its opening comment. So the walk is as true as the files are.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// tree writes the walk through the module at root.
func tree(root string) (string, error) {
	cmd := exec.Command("git", "ls-files", "*.go")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	folders := map[string][]string{}
	for _, file := range strings.Fields(string(out)) {
		if !strings.HasSuffix(file, "_test.go") {
			folders[path.Dir(file)] = append(folders[path.Dir(file)], file)
		}
	}
	var names []string
	for name := range folders {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "### %s\n\n", name)
		files := folders[name]
		sort.Strings(files)
		for _, file := range files {
			text, err := opening(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "- `%s`: %s\n", path.Base(file), text)
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// opening is the first sentence of the comment that a file opens with: before the package clause, or behind it.
func opening(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		return "", err
	}
	if ast.IsGenerated(f) {
		return "generated", nil
	}
	for _, group := range f.Comments {
		if said := group.Text(); said != "" {
			return sentence(said), nil
		}
	}
	return "", nil
}

// sentence is the first sentence of a comment, on one line.
func sentence(text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	for i := 0; i < len(text); i++ {
		if text[i] == '.' && (i+1 == len(text) || text[i+1] == ' ') && !strings.HasSuffix(text[:i], "e.g") {
			return text[:i+1]
		}
	}
	return strings.TrimSuffix(text, ":")
}
