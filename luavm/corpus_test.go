package luavm

// Small scripts with the replies that a real Redis gave, in testdata: a script, "----", the reply a line per line of
// the protocol, an empty line. A comment "--KEYS a b", "--ARGV a b" or "--RESP3" in the script says how it is called.
// go test -record with REDIS_SERVER set writes the replies anew.

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/luavm/corpus"
	"github.com/limitkv/limitkv/resp"
)

var record = flag.Bool("record", false, "record the replies of the server in REDIS_SERVER")

type corpusCase struct {
	line          int
	script, reply string
}

func readCorpus(t testing.TB, path string) (cases []corpusCase) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); {
		if lines[i] == "" {
			i++
			continue
		}
		c := corpusCase{line: i + 1}
		start := i
		for i < len(lines) && lines[i] != "----" {
			i++
		}
		c.script = unescape(strings.Join(lines[start:i], "\n"))
		for i++; i < len(lines) && lines[i] != ""; i++ {
			if lines[i] != "(empty)" { // the line of an empty string
				c.reply += unescape(lines[i])
			}
			c.reply += "\r\n"
		}
		cases = append(cases, c)
	}
	return cases
}

// escape shows bytes that a text file should not hold as \xHH.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' || c > '~' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], `\x`) && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b = append(b, byte(c))
				i += 3
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// callOf reads the comments that say how a script is called.
func callOf(script string) (keys, args []string, resp3 bool) {
	for _, line := range strings.Split(script, "\n") {
		if rest, ok := strings.CutPrefix(line, "--KEYS "); ok {
			keys = strings.Fields(rest)
		}
		if rest, ok := strings.CutPrefix(line, "--ARGV "); ok {
			args = strings.Fields(rest)
		}
		resp3 = resp3 || line == "--RESP3"
	}
	return
}

func runCase(vm *VM, c corpusCase) string {
	keys, args, resp3 := callOf(c.script)
	host := newTestHost()
	w := &resp.Writer{Proto: 2}
	if resp3 {
		w.Proto = 3
	}
	s, err := Compile([]byte(c.script))
	if err != nil {
		w.Error("ERR " + oneLine(err.Error()))
	} else {
		vm.Run(s, bytesList(keys), bytesList(args), host, w)
	}
	return string(w.Buf)
}

func TestCorpus(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if *record {
		recordCorpus(t, files)
		return
	}
	n := 0
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			config := Config{Version: "8.0.6", VersionNum: 0x080006}
			vm := New(config)
			for _, c := range readCorpus(t, path) {
				n++
				if got := runCase(vm, c); got != c.reply {
					t.Errorf("%s:%d\n%s\n got %q\nwant %q", path, c.line, c.script, got, c.reply)
				}
			}
		})
	}
	if n < 10 {
		t.Errorf("only %d cases", n)
	}
}

// The libraries whose tables are those of package tables.
func TestLibraries(t *testing.T) {
	files, err := filepath.Glob("c*/testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatal("too few files:", files, err)
	}
	for _, file := range files {
		vm := New(Config{})
		corpus.RunBy(t, file, func(script string) string {
			reply := corpus.Format([]byte(runCase(vm, corpusCase{script: script})))
			if strings.Contains(script, "code_") { // settings of libraries outlive scripts
				vm = New(Config{})
			}
			return reply
		})
	}
}

func recordCorpus(t *testing.T, files []string) {
	o := startOracle(t)
	for _, path := range files {
		var b strings.Builder
		for _, c := range readCorpus(t, path) {
			keys, args, resp3 := callOf(c.script)
			if resp3 {
				o.do("HELLO", "3")
			}
			reply := o.eval(c.script, keys, args)
			if resp3 {
				o.do("HELLO", "2")
			}
			fmt.Fprintf(&b, "%s\n----\n", escape(c.script))
			for _, line := range strings.Split(strings.TrimSuffix(reply, "\r\n"), "\r\n") {
				if line == "" {
					line = "(empty)" // or it would end the case
				}
				fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(escape(line), "\n", `\x0a`))
			}
			b.WriteString("\n")
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
