package persistence

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/params"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
)

// A snapshot that is whole passes, and one of which any byte is another does not.
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
		err := Check(path, false, func(line string) { said.WriteString(line + "\n") })
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
		if said, err := check(b); err == nil {
			t.Errorf("byte %d is another, and it passes\n%s", i, said)
		}
	}
}
