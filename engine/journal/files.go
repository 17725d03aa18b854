package journal

// The files of the log: a directory with a manifest, as Redis keeps them.

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/limitkv/limitkv/engine/vfs"
)

// Level is how important a line of the server's log is.
type Level int

// The levels, as in Redis.
const (
	Debug Level = iota
	Verbose
	Notice
	Warning
)

// Options say where the files are and how they are named.
type Options struct {
	FS vfs.FS
	// Dir is the server's directory, Dirname the log's directory in it, Filename the prefix of the files' names.
	Dir, Dirname, Filename string
	// Log writes a line to the server's log.
	Log func(Level, string)
	// Monotonic is a clock in microseconds that never goes back.
	Monotonic func() int64
	// Locked says that the caller holds the lock of Dir already.
	Locked bool
}

// Files are the files of the log. After Start or Prepare they have a writer and its methods, and are a [Store]. Methods
// may be called from any goroutine.
type Files struct {
	Options
	*writer
	dir  string // of the log
	lock vfs.Lock

	mu       sync.Mutex
	keep     bool                     // history files stay
	manifest atomic.Pointer[Manifest] // as last written; immutable
	// unsure means that the manifest was renamed, but that the rename may not be on the disk: the files of both
	// manifests must stay.
	unsure bool
	// announced: the file exists that says that there is no manifest yet.
	announced bool
	tail      tail
}

// tail is the end of the last INCR file, as it was loaded.
type tail struct {
	name    string
	size    int64
	covered int64 // marks cover the bytes up to here
	unsure  int64 // bytes from here on may never have been synced
}

const (
	manifestSuffix = ".manifest"
	tempPrefix     = "temp-"
)

// Open locks the directory for this process and reads the manifest. It creates nothing, and a missing manifest is not an
// error.
func Open(o Options) (_ *Files, err error) {
	f := &Files{Options: o, dir: filepath.Join(o.Dir, o.Dirname)}
	f.manifest.Store(&Manifest{})
	if n := len(Entry{Name: f.incrName(1 << 62), Seq: 1 << 62, Type: Incr, Start: 1 << 62, End: 1 << 62}.append(nil)); n >= manifestLineMax {
		return nil, fmt.Errorf("the name %q is too long for a manifest", o.Filename)
	}
	if !o.Locked {
		if f.lock, err = o.FS.Lock(o.Dir); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Dir, err)
		}
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	there, err := vfs.Exists(o.FS, f.dir)
	if err != nil {
		return nil, err
	}
	if !there {
		f.logf(Debug, "The AOF directory %s doesn't exist", o.Dirname)
		return f, nil
	}
	name := o.Filename + manifestSuffix
	if there, err = vfs.Exists(o.FS, f.path(name)); err != nil {
		return nil, err
	}
	if !there {
		f.logf(Debug, "The AOF manifest file %s doesn't exist", name)
		return f, nil
	}
	m, err := ReadManifest(o.FS, f.path(name))
	if err != nil {
		var bad *ManifestError
		if errors.As(err, &bad) {
			for _, line := range bad.LogLines() {
				f.logf(Warning, "%s", line)
			}
		} else {
			f.logf(Warning, "Fatal error: can't open the AOF manifest file %s for reading: %s", f.path(name), strerror(err))
		}
		return nil, err
	}
	f.manifest.Store(m)
	return f, nil
}

// ReadManifest reads a manifest file.
func ReadManifest(file vfs.FS, path string) (*Manifest, error) {
	text, err := vfs.ReadFile(file, path, manifestMax)
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Close ends the writer, if there is one, and unlocks the directory. If the writer could not write everything, Close
// returns the reason, and waiting replies fail.
func (f *Files) Close() (err error) {
	if f.writer != nil {
		if err = f.writer.close(); err != nil {
			f.writer.log.Release()
		}
		f.writer.log.Drop(f.writer)
	}
	if f.lock != nil {
		_ = f.lock.Close() // it only unlocks the directory
	}
	return err
}

// Manifest is a copy of the present manifest. It does not take f.mu, which is held during disk accesses, since event
// loops call it.
func (f *Files) Manifest() *Manifest { return f.manifest.Load().clone() }

// Size is the size of all files of the manifest that hold data.
func (f *Files) Size() (int64, error) {
	var sum int64
	for _, e := range f.Manifest().Parts() {
		info, err := f.FS.Stat(f.path(e.Name))
		if err != nil {
			return 0, err
		}
		sum += info.Size
	}
	return sum, nil
}

func (f *Files) path(name string) string { return filepath.Join(f.dir, name) }

func (f *Files) logf(level Level, format string, args ...any) {
	if f.Log != nil {
		f.Log(level, fmt.Sprintf(format, args...))
	}
}

func (f *Files) incrName(seq int64) string {
	return fmt.Sprintf("%s.%d.incr.aof", f.Filename, seq)
}

func (f *Files) baseName(seq int64, rdb bool) string {
	if rdb {
		return fmt.Sprintf("%s.%d.base.rdb", f.Filename, seq)
	}
	return fmt.Sprintf("%s.%d.base.aof", f.Filename, seq)
}

// The names of unfinished files. A file that is found under such a name is overwritten or removed.
func (f *Files) tempBase() string     { return tempPrefix + f.Filename + ".base" }
func (f *Files) tempIncr() string     { return tempPrefix + f.Filename + ".incr" }
func (f *Files) tempFirst() string    { return tempPrefix + f.Filename + ".first" }
func (f *Files) tempManifest() string { return tempPrefix + f.Filename + manifestSuffix }

// Reason is an error's reason as C names it.
func Reason(err error) string { return strerror(err) }

// strerror is an error's reason as C names it.
func strerror(err error) string {
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		text := no.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	return err.Error()
}

// relock locks the server's directory again if somebody replaced it by another directory, which is not locked yet.
func (f *Files) relock() error {
	if f.lock == nil {
		return nil
	}
	holds, err := f.lock.Holds(f.Dir)
	if err != nil || holds {
		return err
	}
	lock, err := f.FS.Lock(f.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Dir, err)
	}
	_ = f.lock.Close() // the replaced directory cannot be found any more
	f.lock = lock
	return nil
}

// Whole returns an error if the manifest, or a file that it names, does not exist any more: the next start would fail.
func (f *Files) Whole() error {
	for {
		m := f.manifest.Load()
		err := f.there(m)
		if err == nil || f.manifest.Load() == m { // otherwise a rewrite may have removed the file
			return err
		}
	}
}

func (f *Files) there(m *Manifest) error {
	if m.Empty() {
		return nil
	}
	name := f.path(f.Filename + manifestSuffix)
	info, err := f.FS.Stat(name)
	if err == nil && info.Size == 0 {
		err = fmt.Errorf("%s is empty", name)
	}
	for _, e := range m.Parts() {
		if err == nil {
			_, err = f.FS.Stat(f.path(e.Name))
		}
	}
	return err
}

// makeDir makes the log's directory if it is missing, and syncs its name.
func (f *Files) makeDir() error {
	if err := f.relock(); err != nil {
		f.logf(Warning, "The directory of the append-only files cannot be taken: %s", strerror(err))
		return err
	}
	there, err := vfs.Exists(f.FS, f.dir)
	if err == nil && !there {
		err = f.FS.Mkdir(f.dir)
	}
	if err == nil {
		err = f.FS.SyncDir(f.Dir) // The process that made it may have ended before this.
	}
	if err != nil {
		f.logf(Warning, "Can't open or create append-only dir %s: %s", f.Dirname, strerror(err))
	}
	return err
}

// write makes m the manifest. f.mu is held. If the rename succeeds but the sync of the directory fails, m counts as the
// manifest, the files of the old manifest stay, and write returns the error.
func (f *Files) write(m *Manifest) error {
	name := f.Filename + manifestSuffix
	renamed, err := vfs.WriteFile(f.FS, f.dir, f.path(f.tempManifest()), f.path(name), m.Text())
	if renamed {
		f.manifest.Store(m)
		f.unsure = err != nil
	}
	if err == nil && f.announced {
		_ = f.FS.Remove(f.path(f.tempFirst())) // If this fails, the next start removes it.
		f.announced = false
	}
	if err != nil {
		f.logf(Warning, "Error writing the AOF manifest file %s: %s", name, strerror(err))
	}
	return err
}

// KeepHistory sets whether files that a rewrite replaced stay (aof-disable-auto-gc). KeepHistory(false) removes the
// existing ones.
func (f *Files) KeepHistory(on bool) {
	f.mu.Lock()
	f.keep = on
	f.mu.Unlock()
	f.removeHistory()
}

// removeHistory removes files that rewrites replaced. If it fails, they are removed the next time.
func (f *Files) removeHistory() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keep || f.unsure || len(f.manifest.Load().History) == 0 {
		return
	}
	m := f.Manifest()
	history := m.History
	m.History = nil
	inUse := map[string]bool{}
	for _, e := range m.Parts() {
		inUse[e.Name] = true
	}
	for _, e := range history {
		if inUse[e.Name] {
			continue // Only a manifest written by hand has this.
		}
		f.logf(Notice, "Removing the history file %s in the background", e.Name)
		if err := f.FS.Remove(f.path(e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.logf(Warning, "Can't remove the history file %s: %s", e.Name, strerror(err))
			m.History = append(m.History, e)
		}
	}
	_ = f.write(m)
}

// removeTemps removes files that the last run did not finish.
func (f *Files) removeTemps() {
	temps := []string{f.tempBase(), f.tempIncr(), f.tempManifest()}
	if !f.manifest.Load().Empty() {
		temps = append(temps, f.tempFirst())
	}
	for _, name := range temps {
		if there, err := vfs.Exists(f.FS, f.path(name)); err == nil && there {
			_ = f.FS.Remove(f.path(name)) // If this fails, it is overwritten later.
		}
	}
}

// orphans returns an error if there are files of a log without a manifest: starting a new log would overwrite them. It
// returns none if announce left its file, since then the server ended before it wrote its first manifest.
func (f *Files) orphans() error {
	if there, err := vfs.Exists(f.FS, f.dir); err != nil || !there {
		return err
	}
	names, err := f.FS.ReadDir(f.dir)
	if err != nil || slices.Contains(names, f.tempFirst()) || slices.Contains(names, f.Filename+manifestSuffix) {
		return err
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, f.Filename+".")
		number, form, _ := strings.Cut(rest, ".")
		if _, err := strconv.ParseUint(number, 10, 63); ok && err == nil && slices.Contains(forms, form) {
			err := &NoManifestError{f.dir, f.Filename + manifestSuffix, name}
			f.logf(Warning, "%v", err)
			return err
		}
	}
	return nil
}

// NoManifestError is returned if there are files of a log without their manifest.
type NoManifestError struct{ dir, manifest, file string }

func (e *NoManifestError) Error() string {
	return fmt.Sprintf("%s: the manifest %s is missing, and %s is there. Put the manifest back, from a backup perhaps, or move the files away to begin anew. "+
		"limitkv check %s tells what the file holds", e.dir, e.manifest, e.file, filepath.Join(e.dir, e.file))
}

// forms are the endings of the names of the log's files, after their number.
var forms = []string{"base.rdb", "base.aof", "incr.aof"}

// announce makes a file, before the first manifest is written, that says that log files without a manifest belong to a
// starting server. f.mu is held.
func (f *Files) announce() error {
	if there, err := vfs.Exists(f.FS, f.path(f.Filename+manifestSuffix)); err != nil || there {
		return err
	}
	file, err := f.FS.Create(f.path(f.tempFirst()))
	if err == nil {
		err = file.Close()
		f.announced = true
	}
	if err == nil {
		err = f.FS.SyncDir(f.dir)
	}
	return err
}

// upgrade moves an AOF from before Redis 7, one file in the server's directory, into the log's directory as its BASE. It
// may be interrupted anywhere: it resumes if the manifest names a file that is not in the log's directory yet.
func (f *Files) upgrade() error {
	old := filepath.Join(f.Dir, f.Filename)
	info, err := f.FS.Stat(old)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Dir {
		return nil
	} else if err != nil {
		return err
	}
	m := f.manifest.Load()
	if !m.Empty() {
		if m.Base == nil || len(m.Incr) > 0 || m.Base.Name != f.Filename {
			return nil
		}
		if there, err := vfs.Exists(f.FS, f.path(f.Filename)); there || err != nil {
			return err
		}
	}
	if err := f.makeDir(); err != nil {
		return err
	}
	m = m.clone()
	m.Base = &Entry{Name: f.Filename, Seq: 1, Type: Base, Start: -1, End: -1}
	m.BaseSeq = 1
	if err := f.write(m); err != nil {
		return err
	}
	err = f.FS.Rename(old, f.path(f.Filename))
	if err == nil {
		err = f.FS.SyncDir(f.dir)
	}
	if err == nil {
		err = f.FS.SyncDir(f.Dir)
	}
	if err != nil {
		f.logf(Warning, "Error trying to move the old AOF file %s into dir %s: %s", f.Filename, f.Dirname, strerror(err))
		return err
	}
	f.logf(Notice, "Successfully migrated an old-style AOF file (%s) into the AOF directory (%s).", f.Filename, f.Dirname)
	return nil
}
