package documents

// Lines for a shell: the server starts with the flags that a document shows, and make has the targets.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// word is an argument of a line, in quotes or not.
var word = regexp.MustCompile(`"[^"]*"|\S+`)

// Every line that begins with limitkv starts a server, in an empty folder of its own and at a free port; one that begins
// with make names a target.
func TestShellLines(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	started, targets := 0, 0
	for _, name := range append(names, "../../README.md") {
		name = strings.TrimPrefix(name, "../../")
		d := load(t, name)
		for _, b := range d.blocks {
			if b.language != "" && b.language != "sh" {
				continue
			}
			for _, line := range d.lines[b.from:b.to] {
				line, _, _ = strings.Cut(line, " #")
				line = strings.TrimSuffix(strings.TrimPrefix(line, "bin/"), " &")
				args := word.FindAllString(line, -1)
				switch {
				case len(args) < 2:
				case args[0] == "make":
					for _, target := range args[1:] {
						targets++
						if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
							t.Errorf("%s: %s: there is no such target", name, line)
						}
					}
				case args[0] == "limitkv" && strings.HasPrefix(args[1], "--"):
					started++
					s, err := peer.Start("limitkv", bin, own(t, args[1:])...)
					if err != nil {
						t.Errorf("%s: %s: %v", name, line, err)
						continue
					}
					s.Stop()
				}
			}
		}
	}
	if started < 3 || targets < 4 {
		t.Errorf("%d servers were started, %d targets looked for", started, targets)
	}
}

// Parts of Go programs, whose rest is for the reader to write, compile.
func TestPartsOfPrograms(t *testing.T) {
	d := load(t, "docs/testing.md")
	source := "package p\n\nimport (\n\"testing\"\n\n\"github.com/limitkv/limitkv/limitkvtest\"\n\"github.com/redis/go-redis/v9\"\n)\n\n" +
		"var tests []struct{ name string }\n"
	parts := 0
	for _, b := range d.blocks {
		if b.language != "go" {
			continue
		}
		part := strings.Join(d.lines[b.from:b.to], "\n") + "\n"
		if strings.Contains(part, "client :=") {
			part = strings.Replace(part, "…", "_ = client", 1)
		}
		part = strings.Replace(part, "…", "", 1)
		if !strings.HasPrefix(part, "func ") {
			begin := "func part" + strconv.Itoa(parts) + "(t *testing.T) {\n"
			if !strings.Contains(part, "server := ") {
				begin += "s := limitkvtest.Start(t)\n"
			}
			part = begin + part + "}\n"
		}
		source += "\n" + part
		parts++
	}
	if parts < 3 {
		t.Fatalf("only %d parts", parts)
	}
	if out, err := exec.Command("go", "vet", goPackage(t, source)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// own are a line's arguments with a folder and a port of the test's own.
func own(t *testing.T, args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--dir", "--port":
			i++
		default:
			out = append(out, strings.Trim(args[i], `"`))
		}
	}
	return append(out, "--dir", t.TempDir())
}
