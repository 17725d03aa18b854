package journal

// Loading reads the BASE file and the INCR files of the manifest, in order.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/limitkv/limitkv/engine/vfs"
)

// LoadOptions say how to load, and what to do with the commands.
type LoadOptions struct {
	// Truncated cuts a torn end of the last file; without it a torn end is refused (aof-load-truncated).
	Truncated bool
	// CorruptTailMax also cuts an end of the last file that is damaged in another way, if it has at most so many bytes;
	// 0 cuts none (aof-load-corrupt-tail-max-size).
	CorruptTailMax int64
	// StopAt ends the log before the first time stamp that is later, in Unix seconds; 0 loads everything. The log must
	// not be continued on these files then.
	StopAt int64
	// RDB loads an RDB file, or the RDB part that a file begins with, and returns the offset after it.
	RDB func(file vfs.File, size int64) (end int64, err error)
	// Apply applies a unit as a whole. If it returns an error, loading ends.
	Apply func(*Unit) error
	// Databases is the number of databases; 0 for any number. A SELECT of a higher one is passed to Apply as a command.
	Databases int
	// Progress, if not nil, is called now and then with how many of all bytes were read.
	Progress func(read, all int64)
}

// Loaded describes the log that was loaded.
type Loaded struct {
	// None says that there was no log.
	None bool
	// Bytes is the size of all files, Units the number of units, Commands the number of their commands.
	Bytes, Units, Commands int64
	// End is the place where the next log continues.
	End LSN
	// Micros is the latest time in the log, LastMicros its last one, which is earlier if the clock went back. Both are
	// Unix microseconds, and 0 if the log contains no time.
	Micros, LastMicros int64
	// Cut is how many bytes were cut off the last file.
	Cut int64
}

// progressUnits is how many units are applied between two calls of Progress.
const progressUnits = 256

// rdbMagics are the beginnings of RDB files: Redis's, and that of Valkey for its own versions.
var rdbMagics = []string{"REDIS", "VALKEY"}

// isRDB reports whether a file begins with an RDB part.
func isRDB(file io.ReaderAt) (bool, error) {
	var magic [len("VALKEY")]byte
	n, err := file.ReadAt(magic[:], 0)
	if err == io.EOF {
		err = nil
	}
	return slices.ContainsFunc(rdbMagics, func(m string) bool { return bytes.HasPrefix(magic[:n], []byte(m)) }), err
}

// Load reads all files. If something is missing or damaged, it logs the reason and returns an error: the server must not
// serve what was applied before.
func (f *Files) Load(o LoadOptions) (*Loaded, error) {
	f.mu.Lock()
	err := f.upgrade()
	parts := f.manifest.Load().Parts()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return &Loaded{None: true}, f.orphans()
	}
	l := &loading{files: f, o: o, sizes: make([]int64, len(parts))}
	for i, e := range parts {
		info, err := f.FS.Stat(f.path(e.Name))
		if err != nil {
			f.logf(Warning, "Unable to obtain the AOF file %s length. stat: %s", e.Name, strerror(err))
			return nil, err
		}
		l.sizes[i] = info.Size
		l.loaded.Bytes += info.Size
	}
	for i, e := range parts {
		start := f.Monotonic()
		l.last = i == len(parts)-1
		l.behind = 0
		for _, size := range l.sizes[i+1:] {
			l.behind += size
		}
		if err := l.part(e, l.sizes[i]); err != nil {
			return nil, err
		}
		kind := "incr"
		if e.Type == Base {
			kind = "base"
		}
		f.logf(Notice, "DB loaded from %s file %s: %.3f seconds", kind, e.Name, float64(f.Monotonic()-start)/1e6)
		l.before += l.sizes[i]
		if l.stopped {
			break
		}
	}
	return &l.loaded, nil
}

// UnknownError is what LoadOptions.Apply returns for an unknown command.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("unknown command '%.128s'", e.Name) }

// loading is one run of Load.
type loading struct {
	files   *Files
	o       LoadOptions
	sizes   []int64
	last    bool  // the part is the last one
	behind  int64 // the size of all later parts
	before  int64
	stopped bool
	loaded  Loaded
}

// part loads one file.
func (l *loading) part(e Entry, size int64) error {
	f := l.files
	file, err := f.FS.Open(f.path(e.Name))
	if errors.Is(err, fs.ErrNotExist) {
		f.logf(Warning, "The append log file %s doesn't exist: %s", e.Name, strerror(err))
		return err
	} else if err != nil {
		f.logf(Warning, "Fatal error: can't open the append log file %s for reading: %s", e.Name, strerror(err))
		return err
	}
	defer file.Close()
	offset, err := l.rdb(e, file, size)
	if err != nil {
		return err
	}
	r := NewReader(e.Name, file, offset, size, l.o.StopAt)
	r.dbMax = l.o.Databases
	err = l.replay(r, e.Name)
	var d *Damage
	if errors.As(err, &d) {
		if err = l.damaged(d); err == nil {
			l.loaded.Cut = d.Size - d.Good
			size = d.Good
		}
	} else if unknown := (*UnknownError)(nil); errors.As(err, &unknown) {
		f.logf(Warning, "Unknown command '%.128s' reading the append only file %s", unknown.Name, e.Name)
	} else if err != nil {
		f.logf(Warning, "Unrecoverable error reading the append only file %s: %s", e.Name, strerror(err))
	}
	if err != nil {
		return err
	}
	l.stopped = r.Stopped()
	l.ended(e, r, size)
	return nil
}

// ended updates the log's place and the tail from a file that was read.
func (l *loading) ended(e Entry, r *Reader, size int64) {
	facts := r.Facts()
	l.loaded.Units += facts.Units
	l.loaded.Commands += facts.Commands
	l.loaded.Micros = max(l.loaded.Micros, facts.Micros)
	l.loaded.LastMicros = cmp.Or(facts.LastMicros, l.loaded.LastMicros)
	if e.Type != Incr {
		return
	}
	end := l.loaded.End + LSN(size)
	if e.Start >= 0 {
		end = LSN(e.Start) + LSN(size)
	}
	if facts.Last > 0 {
		// Bytes that no mark covers are after the last mark.
		end = facts.Last + LSN(size-min(size, r.covered))
	}
	l.loaded.End = max(l.loaded.End, end, LSN(max(e.End, 0)))
	l.files.tail = tail{name: e.Name, size: size, covered: min(size, r.covered), unsure: size}
	if facts.Marks > 0 { // also if the file was closed: the mark that says so may not have reached the disk
		l.files.tail.unsure = min(size, facts.Synced)
	}
}

// rdb loads the RDB part of a file, if it has one, and returns the offset after it.
func (l *loading) rdb(e Entry, file vfs.File, size int64) (int64, error) {
	f := l.files
	if yes, err := isRDB(file); !yes {
		return 0, err
	}
	old := e.Name == f.Filename
	if old {
		f.logf(Notice, "Reading RDB preamble from AOF file...")
	} else {
		f.logf(Notice, "Reading RDB base file on AOF loading...")
	}
	end, err := l.o.RDB(file, size)
	if err != nil && old {
		f.logf(Warning, "Error reading the RDB preamble of the AOF file %s, AOF loading aborted", e.Name)
	} else if err != nil {
		f.logf(Warning, "Error reading the RDB base file %s, AOF loading aborted", e.Name)
	} else if old {
		f.logf(Notice, "Reading the remaining AOF tail...")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", e.Name, err)
	}
	return end, err
}

// replay applies the units of a reader.
func (l *loading) replay(r *Reader, name string) error {
	for n := 0; ; n++ {
		u, err := r.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := l.o.Apply(u); err != nil {
			return fmt.Errorf("%s: offset %d: %w", name, u.Offset, err)
		}
		if l.o.Progress != nil && n%progressUnits == 0 {
			l.o.Progress(l.before+r.offset(), l.loaded.Bytes)
		}
	}
}

// damaged cuts a damaged end, or logs why it does not.
func (l *loading) damaged(d *Damage) error {
	f := l.files
	var why string
	switch tail := d.Size - d.Good; {
	case d.Torn && !l.o.Truncated:
		f.logf(Warning, "Unexpected end of file reading the append only file %s (%s). You can: "+
			"1) Make a backup of your AOF file, then use limitkv check --fix %s. "+
			"2) Alternatively you can set the 'aof-load-truncated' configuration option to yes and restart the server.", d.File, d, f.dir)
		return d
	case !d.Torn && !(l.o.Truncated && tail <= l.o.CorruptTailMax):
		f.logf(Warning, "Bad file format reading the append only file %s: %s. Restore it from a backup; or make a backup of your AOF file, "+
			"then use limitkv check --fix %s, which cuts what follows offset %d", d.File, d, f.dir, d.Good)
		return d
	case !l.last && l.behind > 0:
		// A crash tears only the last file, since the writer syncs a file before it begins the next one.
		f.logf(Warning, "Fatal error: the truncated file is not the last file (%s)", d)
		return d
	case d.Torn:
		why = "aof-load-truncated is enabled"
	default:
		why = "aof-load-corrupt-tail-max-size allows it"
	}
	if d.Multi {
		f.logf(Warning, "Revert incomplete MULTI/EXEC transaction in AOF file %s", d.File)
	}
	f.logf(Warning, "!!! Warning: short read while loading the AOF file %s!!! (%s)", d.File, d)
	f.logf(Warning, "!!! Truncating the AOF %s at offset %d !!!", d.File, d.Good)
	if err := cutFile(f.FS, f.path(d.File), d.Good); err != nil {
		f.logf(Warning, "Error truncating the AOF file %s: %s", d.File, strerror(err))
		return err
	}
	f.logf(Warning, "AOF %s loaded anyway because %s", d.File, why)
	return nil
}
