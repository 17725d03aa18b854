// Package documents runs what README.md and docs/*.md show: every redis-cli session, line by line, and every program in Go, Python,
// JavaScript and Java, with the client libraries that people use. The replies in a document are what the server says.
//
//	go test ./conformance/documents -programs            runs the programs too, as CI does
//	go test ./conformance/documents -programs -rewrite   writes the replies and outputs anew
package documents

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

var (
	rewrite  = flag.Bool("rewrite", false, "write the replies and outputs of docs/*.md anew")
	programs = flag.Bool("programs", false, "run the programs as well; their libraries are fetched when missing")
)

func TestMain(m *testing.M) { peer.Main(m) }

// tested are the documents whose blocks are run; the first ones have programs in each language.
var tested = []struct {
	name     string
	commands int // at least
}{{"docs/limiters.md", 20}, {"docs/delay-queues.md", 20}, {"docs/locks.md", 30}, {"docs/testing.md", 20}, {"README.md", 8}, {"docs/observing.md", 2}}

const withPrograms = 3

// epoch is where the clock stands when a document's sessions begin.
const epoch = "1700000000000"

// prompt begins a line that is typed in a session.
const prompt = "127.0.0.1:6379> "

// block is a fenced block of a document: its language and the lines between the fences.
type block struct {
	language string
	from, to int // of the lines between the fences
}

// document is a file by lines.
type document struct {
	path   string
	lines  []string
	blocks []block
}

func load(t *testing.T, name string) *document {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	d := &document{path: filepath.Join(root, name)}
	text, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	d.lines = strings.Split(string(text), "\n")
	open := -1
	for i, line := range d.lines {
		switch {
		case open < 0 && strings.HasPrefix(line, "```"):
			open = i
		case open >= 0 && line == "```":
			d.blocks = append(d.blocks, block{strings.TrimPrefix(d.lines[open], "```"), open + 1, i})
			open = -1
		}
	}
	if open >= 0 {
		t.Fatalf("%s:%d: a block that does not end", name, open+1)
	}
	return d
}

// replace puts lines in place of those of a block, and moves the blocks behind it.
func (d *document) replace(i int, lines []string) {
	b := d.blocks[i]
	by := len(lines) - (b.to - b.from)
	d.lines = append(append(append([]string{}, d.lines[:b.from]...), lines...), d.lines[b.to:]...)
	d.blocks[i].to += by
	for j := i + 1; j < len(d.blocks); j++ {
		d.blocks[j].from += by
		d.blocks[j].to += by
	}
}

func (d *document) save(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(d.path, []byte(strings.Join(d.lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every session says what the server says. The sessions of a document follow each other on one server.
func TestSessions(t *testing.T) {
	for _, document := range tested {
		t.Run(document.name, func(t *testing.T) {
			d := load(t, document.name)
			c := peer.LimitKV(t, "--test").Dial(t)
			if v, err := c.Do("LKV.CLOCK", "FREEZE", epoch); err != nil || v.IsError() {
				t.Fatal(v, err)
			}
			typed := 0
			for i := range d.blocks {
				switch d.blocks[i].language {
				case "console":
					typed += d.session(t, c, i)
				case "lua":
					d.script(t, c, i)
				}
			}
			if typed < document.commands {
				t.Errorf("only %d commands", typed)
			}
			t.Logf("%d commands", typed)
			if *rewrite {
				d.save(t)
			}
		})
	}
}

// script runs a script that people have today, on keys that there are not.
func (d *document) script(t *testing.T, c *peer.Conn, i int) {
	source := strings.Join(d.lines[d.blocks[i].from:d.blocks[i].to], "\n")
	if v, err := c.Do("EVAL", source, "2", "script:"+strconv.Itoa(i), "script:to", epoch, "60", "5", "member"); err != nil || v.IsError() {
		t.Errorf("%s:%d: %v %v", d.path, d.blocks[i].from, v, err)
	}
}

// session types a block's commands and compares what follows each.
func (d *document) session(t *testing.T, c *peer.Conn, i int) (typed int) {
	b := d.blocks[i]
	var out []string
	for at := b.from; at < b.to; {
		command, ok := strings.CutPrefix(d.lines[at], prompt)
		if !ok {
			t.Fatalf("%s:%d: not a command", d.path, at+1)
		}
		args, err := recorded.Split(command)
		if err != nil {
			t.Fatalf("%s:%d: %v", d.path, at+1, err)
		}
		v, err := c.Do(args...)
		if err != nil {
			t.Fatalf("%s:%d: %v", d.path, at+1, err)
		}
		got := strings.Split(strings.TrimSuffix(show(v, ""), "\n"), "\n")
		end := at + 1
		for end < b.to && !strings.HasPrefix(d.lines[end], prompt) {
			end++
		}
		if want := strings.Join(d.lines[at+1:end], "\n"); want != strings.Join(got, "\n") && !*rewrite {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", d.path, at+1, command, strings.Join(got, "\n"), want)
		}
		out = append(append(out, d.lines[at]), got...)
		at = end
		typed++
	}
	d.replace(i, out)
	return typed
}

// show writes a reply as redis-cli does in a terminal.
func show(v peer.Value, indent string) string {
	switch {
	case v.Null:
		return "(nil)\n"
	case v.IsError():
		return "(error) " + v.Text + "\n"
	case v.Kind == ':':
		return "(integer) " + v.Text + "\n"
	case v.Kind == '+':
		return v.Text + "\n"
	case v.Kind == '*':
		if len(v.Items) == 0 {
			return "(empty array)\n"
		}
		var b strings.Builder
		width := len(strconv.Itoa(len(v.Items)))
		for i, item := range v.Items {
			label := strings.Repeat(" ", width-len(strconv.Itoa(i+1))) + strconv.Itoa(i+1) + ") "
			if i > 0 {
				b.WriteString(indent)
			}
			b.WriteString(label + show(item, indent+strings.Repeat(" ", len(label))))
		}
		return b.String()
	}
	return strconv.Quote(v.Text) + "\n"
}

// Every program prints what the text block behind it says.
func TestPrograms(t *testing.T) {
	if os.Getenv("CI") == "" && !*programs {
		t.Skip("programs are run in CI, and with -programs")
	}
	ran := map[string]int{}
	for _, document := range tested {
		t.Run(document.name, func(t *testing.T) {
			d := load(t, document.name)
			for i := 0; i+1 < len(d.blocks); i++ {
				if d.blocks[i+1].language != "text" {
					continue
				}
				b := d.blocks[i]
				for _, run := range runners[b.language] {
					t.Run(b.language, func(t *testing.T) {
						server := peer.LimitKV(t)
						port := server.Addr[strings.LastIndexByte(server.Addr, ':')+1:]
						source := strings.ReplaceAll(strings.Join(d.lines[b.from:b.to], "\n")+"\n", "6379", port)
						got := string(bytes.TrimSpace(run(t, source)))
						out := d.blocks[i+1]
						want := strings.Join(d.lines[out.from:out.to], "\n")
						if got != want && !*rewrite {
							t.Errorf("%s:%d prints\n%s\nnot\n%s", d.path, b.from, got, want)
						}
						d.replace(i+1, strings.Split(got, "\n"))
						ran[b.language]++
					})
				}
			}
			if *rewrite {
				d.save(t)
			}
		})
	}
	for _, language := range []string{"go", "python", "js", "java"} {
		if ran[language] < withPrograms && os.Getenv("CI") != "" {
			t.Errorf("%d programs in %s were run", ran[language], language)
		}
	}
}
