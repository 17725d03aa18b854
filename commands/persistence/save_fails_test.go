package persistence_test

// Snapshots on a disk on which each call fails once.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
	"github.com/limitkv/limitkv/server"
)

// TestSaveFailsAnywhere: whichever call fails, either the old or the new snapshot is whole, the client gets the error, and
// the next snapshot succeeds and leaves no other file.
func TestSaveFailsAnywhere(t *testing.T) {
	for _, command := range []string{"SAVE", "BGSAVE"} {
		kinds := map[simfs.Kind]bool{}
		for n := 1; saveFails(t, command, n, kinds); n++ {
		}
		for _, kind := range []simfs.Kind{simfs.Create, simfs.Write, simfs.Sync, simfs.Rename, simfs.SyncDir} {
			if !kinds[kind] {
				t.Errorf("%s: no call of kind %d failed", command, kind)
			}
		}
	}
}

// saveFails makes the nth call of a snapshot fail, and reports whether it has that many calls.
func saveFails(t *testing.T, command string, n int, kinds map[simfs.Kind]bool) (failed bool) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	disk := simfs.New(uint64(n))
	for i := range dir {
		if i > 0 && dir[i] == '/' {
			_ = disk.Mkdir(dir[:i])
		}
	}
	if err := disk.Mkdir(dir); err != nil {
		t.Fatal(err)
	}
	s := livetest.StartWith(t, func(s *server.Server) { s.FS, s.Log = disk, livetest.NoLog{} })
	c := s.Client()
	save := func() (ok bool) {
		if command == "SAVE" {
			return c.Do("SAVE") == "OK"
		}
		c.Want("Background saving started", "BGSAVE")
		wait(t, c, "rdb_bgsave_in_progress:0")
		return strings.Contains(c.Do("INFO", "persistence"), "rdb_last_bgsave_status:ok")
	}
	file := func() string {
		text, err := vfs.ReadFile(disk, filepath.Join(dir, "dump.rdb"), 1<<20)
		if err != nil {
			t.Fatalf("%s, call %d: %v", command, n, err)
		}
		return string(text)
	}
	c.Want("OK", "SET", "k", "before")
	if !save() {
		t.Fatal("no snapshot")
	}
	before := file()
	c.Want("OK", "SET", "k", "after")
	var mu sync.Mutex
	calls := 0
	disk.Plan(func(call simfs.Call) simfs.Accident {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls != n {
			return simfs.Accident{}
		}
		failed, kinds[call.Kind] = true, true
		return simfs.Accident{Err: syscall.EIO, Bytes: 3}
	})
	ok := save()
	disk.Plan(nil)
	text := file()
	isNew := strings.Contains(text, "after") && len(text) > 9 && text[len(text)-9] == 0xff
	if ok && !isNew || !ok && !isNew && text != before {
		t.Errorf("%s, call %d: success %t and %q is there", command, n, ok, text)
	}
	if !failed && !ok {
		t.Errorf("%s failed without a reason", command)
	}
	if !save() || !strings.Contains(file(), "after") {
		t.Errorf("%s after call %d failed: no snapshot", command, n)
	}
	if names, err := disk.ReadDir(dir); err != nil || !slices.Equal(names, []string{"dump.rdb"}) {
		t.Errorf("%s, call %d: %q is there: %v", command, n, names, err)
	}
	return failed
}
