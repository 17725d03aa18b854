package persistence

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// An intact snapshot passes, and one with any changed byte does not.
func TestCheck(t *testing.T) {
	ks := engine.New(engine.NewClock(), 1)
	v := &engine.View{KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	v.Held.AddAll()
	v.PutString([]byte("key"), []byte("value"), 0)
	v.PutInt([]byte("number"), 7, v.Now/1000+1e6)
	var file bytes.Buffer
	w := rdb.NewWriter(&file, params.NewConfig().Dumps().Format(), true)
	w.Origin(rdb.Origin{Version: command.RedisVersion, NowMicros: v.Now})
	v.EachStored(func(e engine.Entry) {
		if err := w.Entry(v, e); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dump.rdb")
	check := func(b []byte) (string, error) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		err := Check(path, Mending{}, func(line string) { said.WriteString(line + "\n") })
		return said.String(), err
	}
	said, err := check(file.Bytes())
	if err != nil || !strings.Contains(said, "2 keys") || !strings.Contains(said, "the checksum is right") {
		t.Fatalf("%v\n%s", err, said)
	}
	without := append(bytes.Clone(file.Bytes()[:file.Len()-8]), make([]byte, 8)...)
	if said, err := check(without); err != nil || !strings.Contains(said, "2 keys") || !strings.Contains(said, "written without a checksum") {
		t.Fatalf("%v\n%s", err, said)
	}
	for i := range file.Bytes() {
		b := bytes.Clone(file.Bytes())
		b[i] ^= 1
		said, err := check(b)
		if i == len("REDIS00") && err == nil && strings.Contains(said, "8 bytes behind the snapshot are not read") {
			continue // of version 2, which had no checksum: a server would load it
		}
		if err == nil {
			t.Errorf("byte %d is another, and it passes\n%s", i, said)
		}
	}
}

// Check never cuts a file that is not one of the server's logs, and keeps a copy of what it cuts.
func TestCheckMends(t *testing.T) {
	const set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"
	empty := rdbFile(t)
	damaged := bytes.Clone(empty)
	damaged[len(damaged)-3] ^= 1
	for _, test := range []struct {
		name, file string
		how        Mending
		left       string // the file's content afterwards
		ok         bool
		said       string // in the output or in the error
	}{
		{"secrets", "root:x:0:0\nme:secret\n", Mending{Fix: true}, "root:x:0:0\nme:secret\n", false, "neither an append-only file nor a snapshot"},
		{"starred", "* a list\n* of notes\n", Mending{Fix: true}, "* a list\n* of notes\n", false, "nothing in it is a command"},
		{"remarks", "# a comment\nuser: x\n", Mending{Fix: true}, "# a comment\nuser: x\n", false, "nothing in it is a command"},
		{"dump.rdb", "", Mending{Fix: true}, "", false, "the file is empty"},
		{"appendonly.aof", "", Mending{Fix: true}, "", true, "ok"},
		{"dump.rdb", string(damaged), Mending{Fix: true}, string(damaged), false, "checksum"},
		{"dump.rdb", string(empty[:len(empty)-9]), Mending{Fix: true}, string(empty[:len(empty)-9]), false, ""},
		{"dump.rdb", "X" + string(empty[1:]), Mending{Fix: true}, "X" + string(empty[1:]), false, "neither"},
		{"dump.rdb", string(empty) + "trailing", Mending{Fix: true}, string(empty) + "trailing", true, "8 bytes behind the snapshot are not read"},
		{"log.aof", set + set[:9], Mending{}, set + set[:9], false, "--fix would cut 9 bytes"},
		{"log.aof", set + set[:9], Mending{Fix: true}, set, true, "a copy is"},
		{"log.aof", string(empty) + set + set[:9], Mending{Fix: true}, string(empty) + set, true, "a copy is"},
		{"log.aof", set + set[:9], Mending{Fix: true, Agree: func(string) bool { return false }}, set + set[:9], false, "it was left as it is"},
		{"log.aof", "#TS:100\r\n" + set + "#TS:200\r\n" + set, Mending{TruncateTo: 150}, "#TS:100\r\n" + set, true, "a copy is"},
		{"log.aof", "#TS:100\r\n" + set, Mending{TruncateTo: 50}, "#TS:100\r\n" + set, false, "nothing is in front of that time"},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		err := Check(path, test.how, func(line string) { said.WriteString(line + "\n") })
		if err != nil {
			said.WriteString(err.Error())
		}
		if (err == nil) != test.ok || !strings.Contains(said.String(), test.said) {
			t.Errorf("%.20q %+v: %s", test.file, test.how, said.String())
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != test.left {
			t.Errorf("%.20q %+v: %.40q is left, %v", test.file, test.how, left, err)
		}
		kept, err := os.ReadFile(path + ".before-fix")
		if cut := test.left != test.file; cut != (err == nil) || cut && string(kept) != test.file {
			t.Errorf("%.20q %+v: the copy is %.40q, %v", test.file, test.how, kept, err)
		}
	}
}

// rdbFile returns a snapshot without keys.
func rdbFile(t *testing.T) []byte {
	var file bytes.Buffer
	w := rdb.NewWriter(&file, params.NewConfig().Dumps().Format(), true)
	w.Origin(rdb.Origin{Version: command.RedisVersion, NowMicros: 1})
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
