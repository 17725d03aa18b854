package persistence

// limitkv export: a snapshot for redis-server, of what it has types for.

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/dumpfile"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
)

// Export reads a snapshot, or what a directory holds, and writes a snapshot of the keys
// of Redis's types. It changes nothing of what it reads, and prints what it left out.
// The server is one that was made for this and has loaded nothing.
func Export(d command.Durability, from, to string, print func(line string)) error {
	f := d.(*family)
	if there, err := vfs.Exists(f.s.FS, to); err != nil || there {
		if err == nil {
			err = fmt.Errorf("%s: %w", to, fs.ErrExist)
		}
		return err
	}
	f.s.Keyspace.Follow(true) // deadlines that have passed are the reader's
	if err := f.readFrom(from); err != nil {
		return err
	}
	written, left := 0, map[engine.Kind]int{}
	without := func(e engine.Entry) bool {
		if k := e.Kind(); !k.Plain() {
			left[k]++
			return true
		}
		written++
		return false
	}
	temp := to + ".temp"
	file, err := f.s.FS.Create(temp)
	if err != nil {
		return err
	}
	err = f.held(func(c *command.Ctx) error { return dumpfile.Write(c, file, dumpfile.What{Without: without}) })
	if err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = f.s.FS.Rename(temp, to)
	}
	if err != nil {
		_ = f.s.FS.Remove(temp)
		return err
	}
	print(fmt.Sprintf("%s: %d keys", to, written))
	for _, k := range slices.Sorted(maps.Keys(left)) {
		print(fmt.Sprintf("left out, since Redis has no such type: %d of type %s", left[k], k))
	}
	return f.s.FS.SyncDir(filepath.Dir(to))
}

// readFrom reads a snapshot, the append-only file that a directory holds, or else its
// snapshot.
func (f *family) readFrom(path string) error {
	info, err := f.s.FS.Stat(path)
	if err != nil {
		return err
	}
	if info.Dir {
		o, err := journal.Find(f.s.FS, path)
		if err == nil {
			return f.readFiles(o)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		path = filepath.Join(path, *f.p.dbfilename.Load())
	}
	file, err := f.s.FS.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err == nil {
		_, err = f.read(file, size, 0, false)
	}
	if err != nil {
		return fmt.Errorf("%s: %w. limitkv check %s tells more", path, err, path)
	}
	return nil
}

func (f *family) readFiles(o journal.Options) error {
	var why string
	o.Monotonic = engine.Monotonic
	o.Log = func(level journal.Level, line string) {
		if level == journal.Warning {
			why = line
		}
	}
	files, err := journal.Open(o)
	if err != nil {
		return err
	}
	defer files.Close()
	if _, err = f.readLog(files, false, 0); err != nil && why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	return err
}
