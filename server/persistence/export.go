package persistence

// limitkv export writes a snapshot for redis-server, with the keys whose types Redis has.

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// Exporting holds the options of Export.
type Exporting struct {
	// Version is the file's version, 0 for that of the server's own snapshots.
	Version int
	// Lossy leaves out what the version cannot hold. Without it such data is an error.
	Lossy bool
}

// Export reads a snapshot, or a directory's files, and writes a snapshot of the keys of Redis's types. It does not change its
// source, and prints what it left out. The server was made for this and has loaded nothing. Errors: an unknown version, a
// source that cannot be read, data that the version cannot hold, a target that exists or cannot be written. After an error
// there is no new target.
func (f *Files) Export(from, to string, how Exporting, print func(line string)) error {
	if how.Version == 0 {
		how.Version = rdb.Version
	}
	reader, ok := rdb.ForVersion(how.Version)
	if !ok {
		return fmt.Errorf("--rdb-version %d: it must be %d to %d", how.Version, rdb.VersionLeast, rdb.VersionMost)
	}
	if there, err := vfs.Exists(f.s.FS, to); err != nil || there {
		if err == nil {
			err = fmt.Errorf("%s: %w", to, fs.ErrExist)
		}
		return err
	}
	f.s.Keyspace.Follow(true) // keys whose deadline has passed are exported; their reader removes them
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
	var lost []string
	err = f.held(func(c *command.Ctx) error {
		if lost = unheld(c, reader); len(lost) > 0 && !how.Lossy {
			return fmt.Errorf("version %d of the format cannot hold %s. --lossy leaves it out", how.Version, strings.Join(lost, ", nor "))
		}
		return dumpfile.Write(c, file, dumpfile.What{Without: without, For: reader, NoFunctions: !reader.Functions()})
	})
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
	if n := f.s.Repaired.Load(); n > 0 {
		print(fmt.Sprintf("repaired: %d values that contradicted themselves; limitkv check names them", n))
	}
	for _, k := range slices.Sorted(maps.Keys(left)) {
		print(fmt.Sprintf("left out, since Redis has no such type: %d of type %s", left[k], k))
	}
	for _, what := range lost {
		print(fmt.Sprintf("lost, since version %d of the format cannot hold it: %s", how.Version, what))
	}
	return f.s.FS.SyncDir(filepath.Dir(to))
}

// namedMax is how many names an error lists of what the file cannot hold.
const namedMax = 10

// unheld lists the data that a file for this reader cannot hold. The caller holds all locks.
func unheld(c *command.Ctx, reader rdb.Audience) (lost []string) {
	tell := func(what string, names []string) {
		if n := len(names); n > 0 {
			more := ""
			if n > namedMax {
				more = " and others"
			}
			lost = append(lost, fmt.Sprintf("%s (%d: %s%s)", what, n, strings.Join(names[:min(n, namedMax)], " "), more))
		}
	}
	if !reader.Functions() {
		var names []string
		for _, code := range c.Server.Functions.Libraries(c.KS) {
			first, _, _ := strings.Cut(code, "\n")
			names = append(names, strconv.Quote(first))
		}
		tell("libraries of functions", names)
	}
	if !reader.Deadlines() {
		var names []string
		defer func(db int) { c.DB = db }(c.DB)
		for c.DB = 0; c.DB < c.KS.Databases(); c.DB++ {
			c.EachStored(func(e engine.Entry) {
				if h, ok := e.Object().(*hash.Hash); ok && h.NextDue() != 0 {
					names = append(names, fmt.Sprintf("%d/%q", c.DB, e.Key()))
				}
			})
		}
		tell("deadlines of fields of hashes", names)
	}
	return lost
}

// readFrom reads a snapshot, or the append-only file in a directory, or else the snapshot in it.
func (f *Files) readFrom(path string) error {
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

func (f *Files) readFiles(o journal.Options) error {
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
