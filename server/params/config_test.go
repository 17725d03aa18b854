package params

// Parameters: reading them from a command line and a file, changing them while the server runs, writing them back.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/resp/words"
)

func testConfig() *Config {
	c := NewConfig()
	c.Int("hz", 10, 1, 500, "")
	c.Memory("maxmemory", 0, 0, 1<<62, "")
	c.Bool("appendonly", false, "")
	c.Text("requirepass", "", "")
	c.Enum("loglevel", "notice", []string{"debug", "notice"}, "")
	c.Int("hash-max-listpack-entries", 128, 0, 1<<62, "")
	c.Alias("hash-max-listpack-entries", "hash-max-ziplist-entries")
	save := "3600 1"
	c.Add(&Param{Name: "save", Adds: true, Words: true, Get: func() string { return save }, Set: func(s string) error { save = s; return nil }})
	c.Add(&Param{Name: "port", Immutable: true, Get: func() string { return "6379" }, Set: func(string) error { return nil }})
	return c
}

func values(c *Config, names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, c.Find(name).Get())
	}
	return strings.Join(all, "|")
}

func TestConfigChange(t *testing.T) {
	for _, c := range []struct{ set, want, state string }{
		{"hz 20 maxmemory 1kb", "", "20|1024|no"},
		{"HZ 20", "", "20|0|no"},
		{"hz 20 nosuch 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'", "10|0|no"},
		{"hz 20 hz 30", "ERR CONFIG SET failed (possibly related to argument 'hz') - duplicate parameter", "10|0|no"},
		{"hz 20 port 1", "ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config", "10|0|no"},
		{"hz 20 maxmemory x", "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value", "10|0|no"},
		{"maxmemory 1gb hz 501", "ERR CONFIG SET failed (possibly related to argument 'hz') - argument must be between 1 and 500 inclusive", "10|0|no"},
		{"appendonly maybe", "ERR CONFIG SET failed (possibly related to argument 'appendonly') - argument must be 'yes' or 'no'", "10|0|no"},
		{"loglevel x", "ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the following: debug, notice", "10|0|no"},
		{"appendonly YES loglevel DEBUG", "", "10|0|yes"},
	} {
		config := testConfig()
		told := 0
		config.OnChange(func() { told++ }, "hz", "maxmemory")
		var sets []Set
		words := strings.Fields(c.set)
		for i := 0; i < len(words); i += 2 {
			sets = append(sets, Set{words[i], words[i+1]})
		}
		if got := config.Change(sets, true); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.set, got, c.want)
		}
		if got := values(config, "hz", "maxmemory", "appendonly"); got != c.state {
			t.Errorf("%s: left %s, not %s", c.set, got, c.state)
		}
		if changed := c.want == "" && c.state[len(c.state)-2:] == "no"; changed != (told == 1) {
			t.Errorf("%s: told %d times", c.set, told)
		}
	}
}

func TestParseArgs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "limitkv.conf")
	text := "# comment\n\nHz 20\nsave 900 1\nsave 300 10\nrequirepass \"a b\\n\"\ninclude " + filepath.Join(dir, "more.conf") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more.conf"), []byte("loglevel debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, from, err := ParseArgs([]string{file, "--maxmemory", "1mb", "--hash-max-ziplist-entries=7", "--hz", "30"})
	if err != nil || from != file {
		t.Fatal(from, err)
	}
	c := testConfig()
	if err := c.Start(settings, func(string) {}); err != nil {
		t.Fatal(err)
	}
	want := "30|1048576|900 1 300 10|a b\n|debug|7"
	if got := values(c, "hz", "maxmemory", "save", "requirepass", "loglevel", "hash-max-listpack-entries"); got != want {
		t.Errorf("got %q, not %q", got, want)
	}

	settings, _, err = ParseArgs([]string{"--maxmemory '7mb'", "--hz 20", "--loglevel", "debug"})
	if err == nil {
		err = c.Start(settings, func(string) {})
	}
	if got := values(c, "maxmemory", "hz", "loglevel"); err != nil || got != "7340032|20|debug" {
		t.Error(got, err)
	}

	for _, bad := range [][]string{{"--nosuch", "1"}, {"--hz", "x"}, {"hz"}, {filepath.Join(dir, "missing")}, {"--hz", "1", "stray"}, {"-x"}, {"--"}} {
		settings, _, err := ParseArgs(bad)
		if err == nil {
			err = testConfig().Start(settings, func(string) {})
		}
		if err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// Settings that start Redis start limitkv, and others do not. Above all, no server starts without the intended password.
func TestStarting(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	more := write("a.conf", "hz 11\nsave 7 7\n")
	write("b.conf", "hz 12\n")
	loop := write("loop.conf", "include "+filepath.Join(dir, "loop.conf")+"\n")
	const wrong = "wrong number of arguments"
	for _, test := range []struct {
		file string // "": none
		args []string
		get  string
		want string // the value, or a part of the error
	}{
		{"", []string{"--requirepass"}, "", wrong},
		{"", []string{"--requirepass", "--appendonly", "no"}, "", wrong},
		{"", []string{"--requirepass="}, "", wrong},
		{"", []string{"--requirepass", ""}, "requirepass", ""},
		{"", []string{"--requirepass", "--secret"}, "requirepass", "--secret"},
		{"", []string{"--requirepass", "--secret", "--hz", "13"}, "hz", "13"},
		{"", []string{"--requirepass --secret", "--hz", "13"}, "requirepass", "--secret"},
		{"", []string{"--requirepass", "a b"}, "requirepass", "a b"},
		{"", []string{"--requirepass=a=b"}, "requirepass", "a=b"},
		{"", []string{"--maxmemory"}, "", wrong},
		{"", []string{"--maxmemory", "--hz", "13"}, "", wrong},
		{"", []string{"--loglevel", "debug", "verbose"}, "", wrong},
		{"requirepass\n", nil, "", wrong},
		{"requirepass x # mine\n", nil, "", wrong},
		{"requirepass \"x # mine\"\n", nil, "requirepass", "x # mine"},
		{"lua-replicate-commands\n", nil, "", wrong},
		{"lua-replicate-commands no\n", nil, "hz", "10"},
		{"rdb-version-check relaxed\navailability-zone \"\"\nbackupdirname a\n", nil, "hz", "10"},
		{"mptcp\n", nil, "", wrong},
		{"save 900 1\nsave 300 10\n", nil, "save", "900 1 300 10"},
		{"save 900 1\nsave \"\"\n", nil, "save", ""},
		{"save 900 1\nsave \"\"\nsave 5 5\n", nil, "save", "5 5"},
		{"save\n", nil, "save", ""},
		{"save 900 1\n", []string{"--save", ""}, "save", ""},
		{"save 900 1\n", []string{"--save"}, "save", ""},
		{"save 900 1\n", []string{"--save", "--hz", "13"}, "save", ""},
		{"save 900 1\n", []string{"--save", "5", "5"}, "save", "900 1 5 5"},
		{"save 900 1\n", []string{"--save", "", "--save", "5 5"}, "save", "5 5"},
		{"include " + more + "\nsave \"\"\n", nil, "save", ""},
		{"hz 20\ninclude " + dir + "/[ab].conf\n", nil, "hz", "12"},
		{"hz 20\ninclude " + dir + "/none*.conf\n", nil, "hz", "20"},
		{"include " + dir + "/none.conf\n", nil, "", "no such file"},
		{"include " + loop + "\n", nil, "", "include each other"},
		{"", []string{"--include", more}, "hz", "11"},
		{"hz 20\n", []string{"--include", more, "--hz", "21"}, "hz", "21"},
		{"loglevel nosuch\nloglevel debug\n", nil, "loglevel", "debug"},
		{"loglevel nosuch\n", []string{"--loglevel", "debug"}, "loglevel", "debug"},
		{"hash-max-listpack-entries 3\nhash-max-ziplist-entries 4\n", nil, "hash-max-listpack-entries", "4"},
	} {
		args := test.args
		if test.file != "" {
			args = append([]string{write("main.conf", test.file)}, args...)
		}
		c := testConfig()
		settings, _, err := ParseArgs(args)
		if err == nil {
			err = c.Start(settings, func(string) {})
		}
		switch {
		case test.get == "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%q %q: %v, want %q", test.file, test.args, err, test.want)
		case test.get != "" && (err != nil || c.Value(test.get) != test.want):
			t.Errorf("%q %q: %s is %q, want %q: %v", test.file, test.args, test.get, c.Value(test.get), test.want, err)
		}
	}
}

// Settings from standard input are read after the file, and before the arguments.
func TestStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.conf")
	if err := os.WriteFile(file, []byte("hz 20\nloglevel debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	was := os.Stdin
	defer func() { os.Stdin = was }()
	for _, args := range [][]string{{file, "-", "--maxmemory", "7"}, {file, "--maxmemory", "7", "-"}, {file, "--maxmemory 7", "-"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.WriteString("hz 30\nmaxmemory 8\n")
		w.Close()
		os.Stdin = r
		settings, from, err := ParseArgs(args)
		c := testConfig()
		if err == nil {
			err = c.Start(settings, func(string) {})
		}
		if got := values(c, "hz", "maxmemory", "loglevel"); err != nil || from != file || got != "30|7|debug" {
			t.Errorf("%q: %q of %q, %v", args, got, from, err)
		}
		r.Close()
	}
}

// A rewritten file gives the present values, although an included file would add to them.
func TestRewriteIncluding(t *testing.T) {
	dir := t.TempDir()
	main, more := filepath.Join(dir, "main.conf"), filepath.Join(dir, "more.conf")
	for path, text := range map[string]string{main: "save 900 1\ninclude " + more + "\n", more: "save 300 10\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range []string{"", "60 1", "5 5 6 6"} {
		for range 2 {
			c := testConfig()
			settings, _, err := ParseArgs([]string{main})
			if err == nil {
				err = c.Start(settings, func(string) {})
			}
			if err != nil {
				t.Fatal(err)
			}
			if failed := c.Change([]Set{{"save", set}}, true); failed != "" {
				t.Fatal(failed)
			}
			if err := c.Rewrite(main); err != nil {
				t.Fatal(err)
			}
		}
		settings, _, err := ParseArgs([]string{main})
		c := testConfig()
		if err == nil {
			err = c.Start(settings, func(string) {})
		}
		if got := c.Value("save"); err != nil || got != set {
			t.Errorf("after a rewrite save is %q, want %q: %v", got, set, err)
		}
	}
}

// Only clients that enable-protected-configs allows can set a parameter that names files.
func TestProtected(t *testing.T) {
	const refused = "ERR CONFIG SET failed (possibly related to argument 'dbfilename') - can't set protected config"
	for _, p := range []struct {
		allowed string
		local   bool
		want    string
	}{
		{"no", true, refused}, {"no", false, refused}, {"local", true, ""}, {"local", false, refused}, {"yes", true, ""}, {"yes", false, ""}, {"", true, refused},
	} {
		c := NewConfig()
		c.Text("dbfilename", "dump.rdb", "")
		c.Find("dbfilename").Protected = true
		if p.allowed != "" { // without the parameter nothing is allowed
			c.Text("enable-protected-configs", p.allowed, "")
		}
		if got := c.Change([]Set{{"dbfilename", "x"}}, p.local); got != p.want {
			t.Errorf("%q, local %v: %q, want %q", p.allowed, p.local, got, p.want)
		}
		if set := c.Value("dbfilename") == "x"; set != (p.want == "") {
			t.Errorf("%q, local %v: it is %q", p.allowed, p.local, c.Value("dbfilename"))
		}
	}
}

func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limitkv.conf")
	before := "# what it is for\nhz 20\nmaxmemory 1mb # not a comment\n\nrename-command FLUSHALL \"\"\nsave 900 1\nsave 300 10\nhash-max-ziplist-entries 5\n"
	after := "# what it is for\nhz 30\nmaxmemory 2048\n\nrename-command FLUSHALL \"\"\nsave 60 1\nhash-max-ziplist-entries 5\n" +
		rewriteMark + "\nrequirepass \"a \\\"b\\\"\"\n"
	if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	if text := c.Change([]Set{{"hz", "30"}, {"maxmemory", "2kb"}, {"save", "60 1"}, {"requirepass", `a "b"`}, {"hash-max-listpack-entries", "5"}}, true); text != "" {
		t.Fatal(text)
	}
	for range 2 { // the second time changes nothing
		if err := c.Rewrite(path); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		if string(got) != after {
			t.Fatalf("got\n%s\nwant\n%s", got, after)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v", info.Mode())
	}
	settings, err := ReadSettings(strings.NewReader(after), path)
	if err != nil {
		t.Fatal(err)
	}
	again := testConfig()
	kept := settings[:0]
	for _, s := range settings {
		if s.Name != "rename-command" {
			kept = append(kept, s)
		}
	}
	if err := again.Start(kept, func(string) {}); err != nil {
		t.Fatal(err)
	}
	names := []string{"hz", "maxmemory", "save", "requirepass", "hash-max-listpack-entries"}
	if values(again, names...) != values(c, names...) {
		t.Errorf("what was written is read as %s, not %s", values(again, names...), values(c, names...))
	}
}

// TestRewriteAlways: a parameter whose default may differ at the next start is written even with its default.
func TestRewriteAlways(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limitkv.conf")
	if err := os.WriteFile(path, []byte("hz 20\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	c.Add(&Param{Name: "dir", Always: true, Get: func() string { return "/here and there" }})
	for range 2 { // the second time changes nothing
		if err := c.Rewrite(path); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); !strings.HasSuffix(string(got), "\n"+rewriteMark+"\ndir \"/here and there\"\n") {
			t.Errorf("got\n%s", got)
		}
	}
}

// FuzzSplitWords: a value that CONFIG REWRITE has quoted is read back unchanged.
func FuzzSplitWords(f *testing.F) {
	f.Add("a b")
	f.Add("'\"\\\n\x00")
	f.Add(" two  blanks ")
	f.Add("0 \f0\v")
	f.Fuzz(func(t *testing.T, value string) {
		for _, ofWords := range []bool{false, true} {
			line := quoted(value, ofWords)
			words, ok := words.Split("name " + line)
			if !ok || strings.Join(words[1:], " ") != value || !ofWords && len(words) != 2 {
				t.Errorf("%q is written %s and read as %q", value, line, words)
			}
		}
	})
}
