package journal

// Tests of loading: files that Redis wrote, missing and damaged files, and the lines in the server's log.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
)

// tree is a server's directory with files, and the lines of the server's log.
type tree struct {
	t    *testing.T
	disk *simfs.FS
	o    Options
	log  []string
}

func plant(t *testing.T, files map[string]string) *tree {
	t.Helper()
	disk, o := simPlace(t)
	d := &tree{t: t, disk: disk, o: o}
	d.o.Log = func(level Level, line string) {
		if level != Debug {
			d.log = append(d.log, line)
		}
	}
	for name, text := range files {
		d.write(name, text)
	}
	return d
}

func (d *tree) write(name, text string) {
	d.t.Helper()
	path := filepath.Join("/d", name)
	if dir := filepath.Dir(path); dir != "/d" {
		if err := d.disk.Mkdir(dir); err != nil {
			d.t.Fatal(err)
		}
	}
	if _, err := vfs.WriteFile(d.disk, filepath.Dir(path), path+"~", path, []byte(text)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *tree) read(name string) string {
	d.t.Helper()
	text, err := vfs.ReadFile(d.disk, filepath.Join("/d", name), 1<<20)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *tree) has(name string) bool {
	there, err := vfs.Exists(d.disk, filepath.Join("/d", name))
	if err != nil {
		d.t.Fatal(err)
	}
	return there
}

// load loads the log. RDB parts are "REDIS" and one digit, the number of keys that they represent.
func (d *tree) load(o LoadOptions) (got []string, loaded *Loaded, err error) {
	d.t.Helper()
	f, err := Open(d.o)
	if err != nil {
		return nil, nil, err
	}
	o.RDB = func(file vfs.File, size int64) (int64, error) {
		text := make([]byte, 6)
		if _, err := file.ReadAt(text, 0); err != nil || text[5] < '0' || text[5] > '9' {
			return 0, errors.New("no RDB")
		}
		got = append(got, "RDB "+string(text[5:]))
		return 6, nil
	}
	o.Apply = func(u *Unit) error {
		for _, c := range u.Commands {
			switch string(c.Args[0]) {
			case "BLA":
				return &UnknownError{"BLA"}
			case "FAILS":
				return errors.New("it fails")
			}
			got = append(got, fmt.Sprintf("%d %s", c.DB, bytes.Join(c.Args[1:], []byte("="))))
		}
		return nil
	}
	loaded, err = f.Load(o)
	if e := f.Close(); e != nil {
		d.t.Error(e)
	}
	return got, loaded, err
}

const (
	inDir    = "appendonlydir/"
	manifest = inDir + "appendonly.aof.manifest"
	baseLine = "file appendonly.aof.1.base.aof seq 1 type b\n"
	incrLine = "file appendonly.aof.%d.incr.aof seq %d type i\n"
)

func set(k, v string) string { return string(cmd("SET", k, v)) }

func incr(n int) string { return fmt.Sprintf(incrLine, n, n) }

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
		end   LSN
	}{
		"nothing":                {nil, nil, 0},
		"an empty directory":     {map[string]string{inDir + "x": ""}, nil, 0},
		"base and increments":    {map[string]string{manifest: baseLine + incr(1) + incr(3), inDir + "appendonly.aof.1.base.aof": set("a", "1"), inDir + "appendonly.aof.1.incr.aof": string(cmd("SELECT", "2")) + set("b", "2"), inDir + "appendonly.aof.3.incr.aof": set("c", "3")}, []string{"0 a=1", "2 b=2", "0 c=3"}, 77},
		"an RDB base":            {map[string]string{manifest: baseLine, inDir + "appendonly.aof.1.base.aof": "REDIS4" + set("a", "1")}, []string{"RDB 4", "0 a=1"}, 0},
		"some are empty":         {map[string]string{manifest: baseLine + incr(1) + incr(3), inDir + "appendonly.aof.1.base.aof": set("a", "1"), inDir + "appendonly.aof.1.incr.aof": "", inDir + "appendonly.aof.3.incr.aof": set("c", "3")}, []string{"0 a=1", "0 c=3"}, 27},
		"short, not yet RDB":     {map[string]string{manifest: incr(1), inDir + "appendonly.aof.1.incr.aof": "#x\r\n"}, nil, 4},
		"a place in the log":     {map[string]string{manifest: "file x seq 1 type i startoffset 100\n", inDir + "x": set("a", "1")}, []string{"0 a=1"}, 127},
		"a place where it ended": {map[string]string{manifest: "file x seq 1 type i startoffset 100 endoffset 500\n", inDir + "x": set("a", "1")}, []string{"0 a=1"}, 500},
	} {
		d := plant(t, c.files)
		got, loaded, err := d.load(LoadOptions{})
		if err != nil || !slices.Equal(got, c.want) || loaded.End != c.end || loaded.None != (len(c.files) < 2) {
			t.Errorf("%s: %q, %+v, %v\n%s", name, got, loaded, err, strings.Join(d.log, "\n"))
		}
	}
}

// TestLoadRefuses checks files that are refused: with Redis's line in the log, and an unchanged directory.
func TestLoadRefuses(t *testing.T) {
	ours, _, _ := marked(4, true)
	rotten := bytes.Clone(ours)
	rotten[len(ours)/2] ^= 1
	plain := set("a", "1") + set("b", "2")
	torn := plain + set("c", "3")[:10]
	two := func(first, second string) map[string]string {
		return map[string]string{manifest: incr(1) + incr(2), inDir + "appendonly.aof.1.incr.aof": first, inDir + "appendonly.aof.2.incr.aof": second}
	}
	for name, c := range map[string]struct {
		files map[string]string
		o     LoadOptions
		line  string
	}{
		"a missing file":          {map[string]string{manifest: baseLine + incr(1), inDir + "appendonly.aof.1.base.aof": plain}, LoadOptions{Truncated: true}, "Unable to obtain the AOF file appendonly.aof.1.incr.aof length. stat: No such file or directory"},
		"no manifest":             {map[string]string{manifest: "!!!\n"}, LoadOptions{}, badManifest},
		"an old file that is not": {map[string]string{manifest: "file appendonly.aof seq 1 type b\n"}, LoadOptions{}, "Unable to obtain the AOF file appendonly.aof length. stat: No such file or directory"},
		"a torn end":              {two(plain, torn), LoadOptions{}, "Unexpected end of file reading the append only file appendonly.aof.2.incr.aof"},
		"torn in the middle":      {two(torn, plain), LoadOptions{Truncated: true, CorruptTailMax: 1000}, "Fatal error: the truncated file is not the last file"},
		"no log":                  {two(plain, plain+"!!!"+plain), LoadOptions{Truncated: true}, "Bad file format reading the append only file appendonly.aof.2.incr.aof"},
		"no log, a large end":     {two(plain, plain+"!!!"+plain), LoadOptions{Truncated: true, CorruptTailMax: int64(len(plain)) + 2}, "Bad file format reading the append only file"},
		"no log, not truncated":   {two(plain, plain+"!!!"), LoadOptions{CorruptTailMax: 1000}, "Bad file format reading the append only file"},
		"rot":                     {two(plain, string(rotten)), LoadOptions{Truncated: true}, "says that it was safely on disk. Restore it from a backup; or make a backup of your AOF file, then use limitkv check --fix"},
		"a bad RDB of Valkey":     {two("VALKEY080", ""), LoadOptions{Truncated: true}, "Error reading the RDB base file appendonly.aof.1.incr.aof, AOF loading aborted"},
		"a bad RDB":               {two("REDISx", ""), LoadOptions{Truncated: true}, "Error reading the RDB base file appendonly.aof.1.incr.aof, AOF loading aborted"},
		"an unknown command":      {two(string(cmd("BLA")), ""), LoadOptions{Truncated: true}, "Unknown command 'BLA' reading the append only file appendonly.aof.1.incr.aof"},
		"a command that fails":    {two(string(cmd("FAILS")), ""), LoadOptions{Truncated: true}, "Unrecoverable error reading the append only file appendonly.aof.1.incr.aof: appendonly.aof.1.incr.aof: offset 0: it fails"},
	} {
		d := plant(t, c.files)
		got, _, err := d.load(c.o)
		if err == nil || !slices.ContainsFunc(d.log, func(line string) bool { return strings.Contains(line, c.line) }) {
			t.Errorf("%s: loaded %q, %v\n%s", name, got, err, strings.Join(d.log, "\n"))
		}
		for path, text := range c.files {
			if d.read(path) != text {
				t.Errorf("%s: %s was changed", name, path)
			}
		}
	}
}

func TestLoadCuts(t *testing.T) {
	plain := set("a", "1")
	for name, c := range map[string]struct {
		tail string
		o    LoadOptions
		line string
	}{
		"half a command":     {set("b", "2")[:9], LoadOptions{Truncated: true}, "loaded anyway because aof-load-truncated is enabled"},
		"half a transaction": {string(cmd("MULTI")) + set("b", "2"), LoadOptions{Truncated: true}, "Revert incomplete MULTI/EXEC transaction in AOF file appendonly.aof.1.incr.aof"},
		"no log":             {"!!!" + set("b", "2"), LoadOptions{Truncated: true, CorruptTailMax: 30}, "loaded anyway because aof-load-corrupt-tail-max-size allows it"},
	} {
		d := plant(t, map[string]string{manifest: incr(1), inDir + "appendonly.aof.1.incr.aof": plain + c.tail})
		got, loaded, err := d.load(c.o)
		if err != nil || !slices.Equal(got, []string{"0 a=1"}) || loaded.Cut != int64(len(c.tail)) || d.read(inDir+"appendonly.aof.1.incr.aof") != plain {
			t.Errorf("%s: %q, %+v, %v", name, got, loaded, err)
		}
		if !slices.ContainsFunc(d.log, func(line string) bool { return strings.Contains(line, c.line) }) {
			t.Errorf("%s: the log says\n%s", name, strings.Join(d.log, "\n"))
		}
	}
}

// TestUpgrade moves a single file from before Redis 7, from every state that a crash may leave.
func TestUpgrade(t *testing.T) {
	const line = "file appendonly.aof seq 1 type b\n"
	for name, files := range map[string]map[string]string{
		"no directory":          {"appendonly.aof": "REDIS2" + set("a", "1")},
		"no manifest":           {"appendonly.aof": "REDIS2" + set("a", "1"), inDir + "x": ""},
		"manifest, not renamed": {"appendonly.aof": "REDIS2" + set("a", "1"), manifest: line},
		"done":                  {manifest: line, inDir + "appendonly.aof": "REDIS2" + set("a", "1")},
		"one more beside":       {"appendonly.aof": set("b", "2"), manifest: line, inDir + "appendonly.aof": "REDIS2" + set("a", "1")},
	} {
		d := plant(t, files)
		got, _, err := d.load(LoadOptions{})
		if err != nil || !slices.Equal(got, []string{"RDB 2", "0 a=1"}) {
			t.Errorf("%s: %q, %v\n%s", name, got, err, strings.Join(d.log, "\n"))
		}
		if d.read(manifest) != line || d.has("appendonly.aof") != (name == "one more beside") || !d.has(inDir+"appendonly.aof") {
			t.Errorf("%s: manifest %q", name, d.read(manifest))
		}
	}
	// The machine crashes at each call of the upgrade, which then runs again.
	for at := 1; ; at++ {
		d := plant(t, map[string]string{"appendonly.aof": set("a", "1")})
		if err := d.disk.SyncDir("/d"); err != nil {
			t.Fatal(err)
		}
		first := d.disk.Calls()
		d.disk.Plan(func(c simfs.Call) simfs.Accident { return simfs.Accident{Crash: c.N == first+at} })
		_, _, _ = d.load(LoadOptions{})
		crashed := d.disk.Down()
		d.disk.Crash()
		d.disk.Restart(true)
		d.disk.Plan(nil)
		got, _, err := d.load(LoadOptions{})
		if err != nil || !slices.Equal(got, []string{"0 a=1"}) {
			t.Fatalf("crash at call %d: %q, %v\n%s", at, got, err, strings.Join(d.log, "\n"))
		}
		if !crashed {
			if at < 10 {
				t.Errorf("only %d calls", at)
			}
			break
		}
	}
}

// TestAdopt continues a file that Redis wrote: a mark covers its content, and rot in it is found from then on.
func TestAdopt(t *testing.T) {
	name := inDir + "appendonly.aof.1.incr.aof"
	d := plant(t, map[string]string{manifest: incr(1), name: set("a", "1") + "#TS:5\r\n"})
	for i := range 3 {
		f, l, _ := start(t, d.o, WriterOptions{Policy: Always, Checksums: i != 1})
		l.Append(one("SET", "b", fmt.Sprint(i)))
		closeAll(t, f)
	}
	want := []string{"0 a=1", "0 b=0", "0 b=1", "0 b=2"}
	got, _, err := d.load(LoadOptions{})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	text := d.read(name)
	for _, what := range []string{"$1\r\n1\r\n", "$1\r\nb\r\n$1\r\n1\r\n"} { // by Redis, and by limitkv without checksums
		i := strings.Index(text, what) + len(what) - 3
		d.write(name, text[:i]+"7"+text[i+1:])
		var damage *Damage
		if _, _, err := d.load(LoadOptions{Truncated: true}); !errors.As(err, &damage) || damage.Torn {
			t.Errorf("rot at %d of %q: %v", i, text, err)
		}
	}
}

// TestAdoptionTorn removes sectors from the end of a file that was being adopted: Redis's part remains all the same.
func TestAdoptionTorn(t *testing.T) {
	name := inDir + "appendonly.aof.1.incr.aof"
	for pad := range 2 * sector {
		foreign := set("a", strings.Repeat("x", pad))
		d := plant(t, map[string]string{manifest: incr(1), name: foreign})
		f, l, w := start(t, d.o, WriterOptions{Checksums: true})
		if text := d.read(name); text != foreign {
			t.Fatalf("%d bytes became %d, and nobody wrote", len(foreign), len(text))
		}
		// Its mark is written, and the machine crashes before anything else is.
		d.disk.Plan(func(c simfs.Call) simfs.Accident { return simfs.Accident{Crash: c.Kind == simfs.Sync} })
		l.Append(one("SET", "b", "1"))
		for !d.disk.Down() {
			runtime.Gosched()
		}
		_, _ = w.close(), f.Close()
		d.disk.Plan(nil)
		d.disk.Restart(false)
		text := []byte(d.read(name))
		if len(text) != len(foreign)+markSize {
			t.Fatalf("%d bytes, %d of them adopted", len(text), len(foreign))
		}
		for s := len(foreign) / sector * sector; s < len(text); s += sector {
			torn := bytes.Clone(text)
			clear(torn[max(s, len(foreign)):min(s+sector, len(text))])
			d.write(name, string(torn))
			got, loaded, err := d.load(LoadOptions{Truncated: true})
			if err != nil || len(got) != 1 || loaded.Cut != markSize {
				t.Fatalf("%d bytes, sector at %d: %v, %v", len(foreign), s, loaded, err)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	name, second := inDir+"appendonly.aof.1.incr.aof", inDir+"appendonly.aof.2.incr.aof"
	ours, ends, _ := marked(4, true)
	rotten := bytes.Clone(ours)
	rotten[ends[2]+100] ^= 1
	d := plant(t, map[string]string{manifest: incr(1) + incr(2), name: string(ours), second: string(rotten)})
	var printed []string
	check := func(path string, fix bool, to int64) ([]Part, error) {
		printed = nil
		return Check(CheckOptions{FS: d.disk, Path: path, Fix: fix, TruncateTo: to, Print: func(line string) { printed = append(printed, line) }})
	}
	for _, path := range []string{"/d", "/d/appendonlydir", "/d/" + manifest} {
		parts, err := check(path, false, 0)
		var damage *Damage
		if !errors.As(err, &damage) || damage.Good != int64(ends[2]) || len(parts) != 2 || parts[0].Err != nil || parts[0].Facts.Units != 12 {
			t.Errorf("%s: %+v, %v\n%s", path, parts, err, strings.Join(printed, "\n"))
		}
	}
	if d.read(second) != string(rotten) {
		t.Error("a check changed the file")
	}
	held, err := d.disk.Lock("/d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check("/d", true, 0); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a file of a server that runs was mended: %v", err)
	}
	_ = held.Close()
	parts, err := check("/d", true, 0)
	if err != nil || parts[1].Cut != int64(len(rotten)-ends[2]) || d.read(second) != string(ours[:ends[2]]) {
		t.Errorf("%+v, %v\n%s", parts, err, strings.Join(printed, "\n"))
	}
	if _, err := check("/d", false, 0); err != nil {
		t.Error(err)
	}
	d.write(name, string(rotten))
	if _, err := check("/d", true, 0); err == nil || d.read(name) != string(rotten) {
		t.Errorf("a file that is not the last one was cut: %v", err)
	}
	if _, err := check("/d/none", false, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if parts, err := check("/d/"+second, false, 0); err != nil || len(parts) != 1 {
		t.Errorf("one file: %+v, %v", parts, err)
	}
}

// TestTruncateTo cuts at a time, also within a group.
func TestTruncateTo(t *testing.T) {
	d := plant(t, nil)
	f, l, w := start(t, d.o, WriterOptions{Policy: Never, Checksums: true, Timestamps: true})
	for i := range 6 {
		b := one("SET", "a", fmt.Sprint(i))
		b.NowMicros = int64(i+100) * 1e6
		l.Append(b)
		if i == 2 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeAll(t, f)
	for _, to := range []int64{104, 103, 102, 100} {
		if _, err := Check(CheckOptions{FS: d.disk, Path: "/d", TruncateTo: to}); err != nil {
			t.Fatal(err)
		}
		got, _, err := d.load(LoadOptions{})
		if err != nil || len(got) != int(to-99) {
			t.Errorf("cut at %d: %q, %v", to, got, err)
		}
	}
	if _, err := Check(CheckOptions{FS: d.disk, Path: "/d", TruncateTo: 99}); err == nil {
		t.Error("everything was cut")
	}
}

// TestHistory removes history files and unfinished files that a crash left.
func TestHistory(t *testing.T) {
	d := plant(t, map[string]string{
		manifest:                            "file appendonly.aof.2.base.aof seq 2 type b\nfile old seq 1 type h\nfile gone seq 2 type h\n",
		inDir + "appendonly.aof.2.base.aof": set("a", "1"), inDir + "old": set("b", "2"),
		inDir + "temp-appendonly.aof.base": "x", inDir + "temp-appendonly.aof.incr": "x", inDir + "temp-appendonly.aof.manifest": "x",
	})
	f, _, _ := start(t, d.o, WriterOptions{})
	closeAll(t, f)
	names, err := d.disk.ReadDir("/d/appendonlydir")
	if err != nil || !slices.Equal(names, []string{"appendonly.aof.1.incr.aof", "appendonly.aof.2.base.aof", "appendonly.aof.manifest"}) {
		t.Errorf("%q, %v", names, err)
	}
	const line = "file appendonly.aof.2.base.aof seq 2 type b\nfile appendonly.aof.1.incr.aof seq 1 type i startoffset 0"
	if m := d.read(manifest); m != line+" endoffset 0\n" {
		t.Errorf("manifest\n%s", m)
	}
	// The end of a file is unknown while it is written.
	f, _, _ = start(t, d.o, WriterOptions{})
	if m := d.read(manifest); m != line+"\n" {
		t.Errorf("manifest\n%s", m)
	}
	closeAll(t, f)
}

func TestNameTooLong(t *testing.T) {
	_, o := simPlace(t)
	o.Filename = strings.Repeat("\x01", 230)
	if _, err := Open(o); err == nil {
		t.Error("a name whose line nobody could read")
	}
}
