// Command generate writes the parts of the documents that the code itself knows: the table of commands of docs/commands.md and
// the answers of docs/COMPATIBILITY.md, from what the built server's COMMAND DOCS says. So none can promise what is not there.
// "make generate" runs it, and CI looks that nothing changes.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

func main() {
	log.SetFlags(0)
	root, err := peer.ModuleRoot()
	if err != nil {
		log.Fatal(err)
	}
	err = generate(root)
	peer.Cleanup()
	if err != nil {
		log.Fatal(err)
	}
}

// generate writes all parts of all documents.
func generate(root string) error {
	commands, answers, err := fromServer()
	if err != nil {
		return err
	}
	bin, err := peer.Build()
	if err != nil {
		return err
	}
	more, err := lists(bin)
	if err != nil {
		return err
	}
	parts := []part{
		{"docs/commands.md", "commands", commands},
		{"docs/COMPATIBILITY.md", "compatibility", answers},
	}
	for name, text := range more {
		parts = append(parts, part{"docs/COMPATIBILITY.md", name, text})
	}
	for _, part := range parts {
		if err := replace(filepath.Join(root, filepath.FromSlash(part.file)), part.name, part.text); err != nil {
			return err
		}
	}
	return nil
}

// part is what is written between two lines of a file.
type part struct{ file, name, text string }

// replace writes text between the two lines of a file that enclose the part of that name.
func replace(path, name, text string) error {
	begin := []byte("<!-- " + name + ": written by make generate -->\n")
	end := []byte("<!-- end of " + name + " -->\n")
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, begin)
	_, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for %s", path, name)
	}
	return os.WriteFile(path, bytes.Join([][]byte{before, begin, []byte(text), end, after}, nil), 0o644)
}

// fromServer is what the built server knows: the table of docs/commands.md, and docs/COMPATIBILITY.md's answers.
func fromServer() (commands, answers string, err error) {
	groups, err := readNames(redisNames)
	if err != nil {
		return "", "", err
	}
	notes, err := readNotes(redisNotes)
	if err != nil {
		return "", "", err
	}
	docs, err := commandDocs()
	if err != nil {
		return "", "", err
	}
	tests, err := commandDocs("--test")
	if err != nil {
		return "", "", err
	}
	answers, err = compatibility(groups, notes, entries(docs), entries(tests))
	return table(docs), answers, err
}

// commandDocs starts the built server and asks it for its commands.
func commandDocs(args ...string) (docs peer.Value, err error) {
	bin, err := peer.Build()
	if err != nil {
		return docs, err
	}
	server, err := peer.Start("limitkv", bin, append(args, "--save", "")...)
	if err != nil {
		return docs, err
	}
	defer server.Stop()
	conn, err := peer.Dial(server.Addr)
	if err != nil {
		return docs, err
	}
	defer conn.Close()
	docs, err = conn.Do("COMMAND", "DOCS")
	if err == nil && docs.IsError() {
		err = fmt.Errorf("COMMAND DOCS: %v", docs)
	}
	return docs, err
}

// entry is what COMMAND DOCS says of a command.
type entry struct {
	group, summary string
	parent         bool // it has subcommands
}

// entries are the commands and subcommands of a reply of COMMAND DOCS by the names of COMMAND LIST.
func entries(docs peer.Value) map[string]entry {
	all := map[string]entry{}
	var add func(pairs []peer.Value)
	add = func(pairs []peer.Value) {
		for i := 0; i+1 < len(pairs); i += 2 {
			subs := property(pairs[i+1], "subcommands").Items
			all[strings.ToLower(pairs[i].Text)] = entry{
				group: property(pairs[i+1], "group").Text, summary: property(pairs[i+1], "summary").Text, parent: len(subs) > 0,
			}
			add(subs)
		}
	}
	add(docs.Items)
	return all
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
