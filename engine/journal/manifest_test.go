package journal

// Tests of the manifest's grammar.

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/vfs/simfs"
)

func TestManifestParses(t *testing.T) {
	text := `# a comment, which is left alone
file appendonly.aof.2.base.rdb seq 2 type b
file appendonly.aof.1.incr.aof seq 1 type h newkey newvalue
  FILE "two words\n.aof" SEQ 4 TYPE incremental startoffset 17  ` + "\t\r" + `
seq 6x type 'i' file plain"quoted" startoffset 30 endoffset 99
`
	m, err := ParseManifest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		Base:    &Entry{"appendonly.aof.2.base.rdb", 2, Base, -1, -1},
		History: []Entry{{"appendonly.aof.1.incr.aof", 1, History, -1, -1}},
		Incr:    []Entry{{"two words\n.aof", 4, Incr, 17, -1}, {"plainquoted", 6, Incr, 30, 99}},
		BaseSeq: 2, IncrSeq: 6,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v\nwant %+v", m, want)
	}
	const out = `file appendonly.aof.2.base.rdb seq 2 type b
file appendonly.aof.1.incr.aof seq 1 type h
file "two words\n.aof" seq 4 type i startoffset 17
file plainquoted seq 6 type i startoffset 30 endoffset 99
`
	if string(m.Text()) != out {
		t.Errorf("written as\n%s", m.Text())
	}
	if parts := m.Parts(); len(parts) != 3 || parts[0].Type != Base || parts[2].Seq != 6 {
		t.Errorf("parts %+v", parts)
	}
}

// TestManifestRefuses checks that every invalid manifest gives Redis's error.
func TestManifestRefuses(t *testing.T) {
	const good = "file a.1.base.aof seq 1 type b\n"
	long := "file a seq 1 type i" + strings.Repeat(" k v", 300)
	for _, c := range []struct{ text, reason string }{
		{"", "Found an empty AOF manifest"},
		{good + "\n", badManifest},
		{good + " \t\n", badManifest},
		{good + "!!!\n", badManifest},
		{good + "filx a seq 1 type i\n", badManifest},
		{good + "file a type i\n", badManifest},
		{good + "file a seq 1 type i newkey\n", badManifest},
		{good + "file a seq x type i\n", badManifest},
		{good + "file a seq 1 type ''\n", badManifest},
		{good + "file \"a seq 1 type i\n", badManifest},
		{good + "file 'a'b seq 1 type i\n", badManifest},
		{good + "file .. seq 1 type i\n", badManifest},
		{good + "file a/b seq 1 type i\n", "File can't be a path, just a filename"},
		{good + "file a\\\\b seq 1 type i\n", "File can't be a path, just a filename"},
		{good + good, "Found duplicate base file information"},
		{"file a seq 2 type i\nfile b seq 1 type i\n", "Found a non-monotonic sequence number"},
		{"file a seq 2 type i\nfile b seq 2 type i\n", "Found a non-monotonic sequence number"},
		{"file a seq -2 type i\n", "Found a non-monotonic sequence number"},
		{"file a seq 1 type x\n", "Unknown AOF file type"},
		{good + "file a seq 1 type i", longManifest},
		{long + "\n", longManifest},
		{good + "file a seq 1\x00 type i\n", longManifest},
	} {
		m, err := ParseManifest([]byte(c.text))
		var bad *ManifestError
		if !errors.As(err, &bad) || bad.Reason != c.reason {
			t.Errorf("%.80q: %+v, %v, want %q", c.text, m, err, c.reason)
			continue
		}
		if lines := bad.LogLines(); lines[len(lines)-1] != c.reason || len(lines) != 2 && len(lines) != 4 {
			t.Errorf("logged as %q", lines)
		}
	}
	edge := "file a seq 1 type i"
	edge += " k " + strings.Repeat("v", manifestLineMax-len(edge)-len(" k \n")) + "\n"
	if _, err := ParseManifest([]byte(edge)); err != nil || len(edge) != manifestLineMax {
		t.Errorf("a line of %d bytes: %v", len(edge), err)
	}
	if _, err := ParseManifest([]byte(strings.Replace(edge, "v\n", "vv\n", 1))); err == nil {
		t.Error("a line that is one byte longer is taken")
	}
}

// FuzzManifest checks that a manifest that can be read is the same after writing and reading it.
func FuzzManifest(f *testing.F) {
	f.Add([]byte("file a.1.base.rdb seq 1 type b\nfile \"a \\x41\\n\" seq 2 type i startoffset 5 endoffset 6\n"))
	f.Add([]byte("# c\nfile 'it\\'s' seq 3 type h k v\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		for _, e := range m.Parts() {
			if len(e.append(nil)) > manifestLineMax {
				return // Quoting makes its line too long. Open refuses such names.
			}
			if e.Start == -1 && e.End != -1 {
				return // An end without a start is not written.
			}
		}
		for _, e := range m.History {
			if len(e.append(nil)) > manifestLineMax || e.Start == -1 && e.End != -1 {
				return
			}
		}
		if len(m.Text()) == 0 {
			return
		}
		again, err := ParseManifest(m.Text())
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, m.Text(), err)
		}
		if fmt.Sprintf("%+v", again.Parts()) != fmt.Sprintf("%+v", m.Parts()) || !reflect.DeepEqual(again.History, m.History) {
			t.Fatalf("%q was written as %q", text, m.Text())
		}
	})
}

// TestManifestDoesNotWait checks that Size does not wait while the manifest is being replaced, which waits for the disk.
func TestManifestDoesNotWait(t *testing.T) {
	f := &Files{Options: Options{FS: simfs.New(1)}}
	f.manifest.Store(&Manifest{BaseSeq: 7})
	f.mu.Lock() // as during a replacement
	defer f.mu.Unlock()
	asked := make(chan int64)
	go func() {
		_, _ = f.Size()
		asked <- f.Manifest().BaseSeq
	}()
	select {
	case seq := <-asked:
		if seq != 7 {
			t.Fatalf("sequence number %d, want 7", seq)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
}
