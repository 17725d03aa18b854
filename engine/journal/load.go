package journal

// Loading: the BASE file and the INCR files of the manifest, one behind the other.

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

// LoadOptions say how to load, and where to.
type LoadOptions struct {
	// Truncated cuts a torn end of the last file; without it a torn end is refused (aof-load-truncated).
	Truncated bool
	// CorruptTailMax cuts, in the last file, an end that is damaged in any other way too, if it is at most so many
	// bytes; 0, none (aof-load-corrupt-tail-max-size).
	CorruptTailMax int64
	// StopAt ends the log before the first time stamp that is later, in Unix seconds; 0, nowhere. The files are not to be
	// gone on with then.
	StopAt int64
	// RDB loads an RDB file, or the RDB part that a file begins with, and returns the offset behind it.
	RDB func(file vfs.File, size int64) (end int64, err error)
	// Apply applies what is to be applied whole. An error of it ends the loading.
	Apply func(*Unit) error
	// Databases is how many there are: SELECT of another one is a command that Apply gets. 0 is for any number.
	Databases int
	// Progress, where it is set, is told now and then how many of all bytes were read.
	Progress func(read, all int64)
}

// Loaded is what a log was.
type Loaded struct {
	// None says that there was no log.
	None bool
	// Bytes is the size of all files, Units the number of what was applied whole, Commands that of their commands.
	Bytes, Units, Commands int64
	// End is the place in the log where the next one goes on.
	End LSN
	// Micros is the latest time that the log tells, LastMicros the one that it ends with: the clock may have gone back. Both
	// are Unix microseconds, and 0 where it tells none.
	Micros, LastMicros int64
	// Cut is how many bytes were cut off the last file.
	Cut int64
}

// progressUnits is how many units are applied between two calls of Progress.
const progressUnits = 256

// rdbMagics are what RDB files begin with: Redis's, and Valkey's of its own versions.
var rdbMagics = []string{"REDIS", "VALKEY"}

// isRDB says whether a file begins with an RDB part.
func isRDB(file io.ReaderAt) (bool, error) {
	var magic [len("VALKEY")]byte
	n, err := file.ReadAt(magic[:], 0)
	if err == io.EOF {
		err = nil
	}
	return slices.ContainsFunc(rdbMagics, func(m string) bool { return bytes.HasPrefix(magic[:n], []byte(m)) }), err
}

// Load reads all files. It returns an error, after it has logged why, where something is missing or damaged: what was
// applied up to there is not to be served.
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

// UnknownError is what LoadOptions.Apply returns for a command that there is not.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("unknown command '%.128s'", e.Name) }

// loading is one run of Load.
type loading struct {
	files   *Files
	o       LoadOptions
	sizes   []int64
	last    bool  // the part is the last one
	behind  int64 // the size of all parts behind it
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

// ended takes over what a file that was read tells of the log's place, and of its own end.
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
		// Bytes that no mark covers lie behind the last one.
		end = facts.Last + LSN(size-min(size, r.covered))
	}
	l.loaded.End = max(l.loaded.End, end, LSN(max(e.End, 0)))
	l.files.tail = tail{name: e.Name, size: size, covered: min(size, r.covered), unsure: size}
	if facts.Marks > 0 { // also of one that was closed: the mark that says so may not have reached the disk
		l.files.tail.unsure = min(size, facts.Synced)
	}
}

// rdb loads the RDB part of a file where it has one, and returns the offset behind it.
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

// replay applies what a reader returns.
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

// damaged cuts a damaged end, or says why not.
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
		// What is torn was never safe, and then no file behind it was begun.
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
