// Command readme writes the table of commands into README.md, from what the built server says of itself: COMMAND DOCS
// gives each command's group. So the table cannot promise what is not there. "make generate" runs it, and a test fails
// when README.md is not what it would write.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The table stands between these lines of README.md.
const (
	begin = "<!-- commands: written by make generate -->\n"
	end   = "<!-- end of commands -->\n"
)

func main() {
	log.SetFlags(0)
	root, err := peer.ModuleRoot()
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(root, "README.md")
	old, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	text, err := rewrite(old)
	peer.Cleanup()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		log.Fatal(err)
	}
}

// rewrite replaces the table in a README by that of the built server.
func rewrite(readme []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(readme, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, errors.New("README.md has no place for the table of commands")
	}
	bin, err := peer.Build()
	if err != nil {
		return nil, err
	}
	server, err := peer.Start("limitkv", bin)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	conn, err := peer.Dial(server.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	docs, err := conn.Do("COMMAND", "DOCS")
	if err != nil || docs.IsError() {
		return nil, fmt.Errorf("COMMAND DOCS: %v %v", docs, err)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(table(docs)), []byte(end), after}, nil), nil
}

// table writes a row for each group, the largest first. docs is the reply of COMMAND DOCS in RESP2: names and flat
// arrays of properties in turn.
func table(docs peer.Value) string {
	groups := map[string][]string{}
	total := 0
	for i := 0; i+1 < len(docs.Items); i += 2 {
		name := strings.ToUpper(docs.Items[i].Text)
		group := property(docs.Items[i+1], "group").Text
		subs := property(docs.Items[i+1], "subcommands")
		if len(subs.Items) == 0 {
			groups[group] = append(groups[group], name)
			total++
			continue
		}
		for j := 0; j < len(subs.Items); j += 2 {
			groups[group] = append(groups[group], strings.ToUpper(strings.ReplaceAll(subs.Items[j].Text, "|", " ")))
			total++
		}
	}
	var names []string
	for g := range groups {
		names = append(names, g)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := names[i], names[j]
		return len(groups[a]) > len(groups[b]) || len(groups[a]) == len(groups[b]) && a < b
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%d commands and subcommands:\n\n| group | | commands |\n| --- | ---: | --- |\n", total)
	for _, g := range names {
		sort.Strings(groups[g])
		fmt.Fprintf(&b, "| %s | %d | %s |\n", g, len(groups[g]), strings.Join(groups[g], ", "))
	}
	return b.String()
}

// property is a value of a flat array of names and values.
func property(v peer.Value, name string) peer.Value {
	for i := 0; i+1 < len(v.Items); i += 2 {
		if v.Items[i].Text == name {
			return v.Items[i+1]
		}
	}
	return peer.Value{}
}
