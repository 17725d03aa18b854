package journal

// Checking examines files without loading them: it reports their content, verifies every checksum, and can cut a damaged
// end.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/limitkv/limitkv/engine/vfs"
)

// CheckOptions say what to check, and what to do about damage.
type CheckOptions struct {
	FS vfs.FS
	// Path is a manifest, one file of a log, or a directory with either.
	Path string
	// RDB checks an RDB file, or the RDB part that a file begins with, and returns the offset after it.
	RDB func(file vfs.File, size int64) (end int64, err error)
	// Fix cuts a damaged end of the last file.
	Fix bool
	// TruncateTo cuts everything from the first time stamp that is later, in Unix seconds; 0 cuts nothing.
	TruncateTo int64
	// Print prints a line about a finding.
	Print func(string)
	// Agree is called before anything is cut; if it is nil, Check does not ask. Check first copies the file.
	Agree func(question string) bool
}

// Why a file is not taken for one of the server's, or is left unchanged.
var (
	errStrange = errors.New("this is neither an append-only file nor a snapshot: it stays as it is")
	errEmpty   = errors.New("the file is empty")
	errLeft    = errors.New("it was left as it is")
)

// Part is what a check found in one file.
type Part struct {
	Entry
	// RDB is the size of the RDB part, Size the size of the file before anything is cut.
	RDB, Size int64
	Facts     Facts
	// Err is a *Damage, or why the file could not be read.
	Err error
	// Cut is how many bytes were cut.
	Cut int64
}

// Check checks the files that a path names. It returns what it found in each file, and the first problem that it did not
// repair.
func Check(o CheckOptions) ([]Part, error) {
	c := checker{CheckOptions: o}
	info, err := o.FS.Stat(o.Path)
	if err != nil {
		return nil, err
	}
	if o.Fix || o.TruncateTo != 0 {
		unlock, err := c.lock(info.Dir)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	path := o.Path
	if info.Dir {
		if path, err = c.find(path); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(path, manifestSuffix) {
		return c.log(path)
	}
	c.alone = true
	p := c.part(filepath.Dir(path), Entry{Name: filepath.Base(path), Start: -1, End: -1}, true)
	return []Part{p}, p.Err
}

type checker struct {
	CheckOptions
	alone bool // the file is checked on its own, without a manifest
}

func (c *checker) printf(format string, args ...any) {
	if c.Print != nil {
		c.Print(fmt.Sprintf(format, args...))
	}
}

// lock locks the directories that a server that writes to the files would lock.
func (c *checker) lock(dir bool) (unlock func(), err error) {
	at := filepath.Clean(c.Path)
	if !dir {
		at = filepath.Dir(at)
	}
	var held []io.Closer
	unlock = func() {
		for _, h := range held {
			_ = h.Close() // This only unlocks.
		}
	}
	for _, d := range []string{at, filepath.Join(at, "..")} {
		h, err := c.FS.Lock(d)
		if err != nil {
			unlock()
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		held = append(held, h)
	}
	return unlock, nil
}

// find looks for the manifest in a directory, or in the directories below it.
func (c *checker) find(dir string) (string, error) {
	names, err := c.FS.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := c.FS.Stat(path)
		if err != nil {
			return "", err
		}
		if !info.Dir {
			found = appendManifest(found, path)
			continue
		}
		below, err := c.FS.ReadDir(path)
		if err != nil {
			return "", err
		}
		for _, name := range below {
			found = appendManifest(found, filepath.Join(path, name))
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s: no manifest of an append-only file there: %w", dir, fs.ErrNotExist)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s: more than one manifest there: %s", dir, strings.Join(found, ", "))
}

// Find returns where the log is in a directory, or in a directory below it.
func Find(file vfs.FS, dir string) (o Options, err error) {
	c := checker{CheckOptions: CheckOptions{FS: file}}
	path, err := c.find(dir)
	if err != nil {
		return o, err
	}
	at := filepath.Dir(path)
	return Options{FS: file, Dir: filepath.Dir(at), Dirname: filepath.Base(at), Filename: strings.TrimSuffix(filepath.Base(path), manifestSuffix)}, nil
}

func appendManifest(found []string, path string) []string {
	if name := filepath.Base(path); strings.HasSuffix(name, manifestSuffix) && !strings.HasPrefix(name, tempPrefix) {
		return append(found, path)
	}
	return found
}

// log checks all files of a manifest.
func (c *checker) log(path string) ([]Part, error) {
	m, err := ReadManifest(c.FS, path)
	if err != nil {
		return nil, err
	}
	c.printf("%s: %d files, %d of history", path, len(m.Parts()), len(m.History))
	var parts []Part
	entries := m.Parts()
	for i, e := range entries {
		p := c.part(filepath.Dir(path), e, i == len(entries)-1)
		parts = append(parts, p)
		if p.Err != nil && err == nil {
			err = p.Err
		}
	}
	return parts, err
}

// part checks one file.
func (c *checker) part(dir string, e Entry, last bool) Part {
	p := Part{Entry: e}
	path := filepath.Join(dir, e.Name)
	file, err := c.FS.Open(path)
	if err != nil {
		p.Err = err
		c.printf("%s: %s", e.Name, strerror(err))
		return p
	}
	defer file.Close()
	if p.Size, p.Err = file.Size(); p.Err == nil {
		p.RDB, p.Err = c.rdb(file, p.Size)
	}
	if c.alone && p.Err == nil {
		if p.Err = c.strange(file, &p); p.Err == nil && p.Size == p.RDB {
			c.describe(p)
			return p
		}
	}
	if p.Err != nil {
		c.printf("%s: %s", e.Name, p.Err)
		return p
	}
	r := NewReader(e.Name, file, p.RDB, p.Size, c.TruncateTo)
	for p.Err == nil {
		_, p.Err = r.Next()
	}
	if p.Err == io.EOF {
		p.Err = nil
	}
	p.Facts = r.Facts()
	c.describe(p)
	var d *Damage
	switch {
	case errors.As(p.Err, &d):
		c.mend(&p, d, path, last)
	case p.Err == nil && r.Stopped():
		p.Cut, p.Err = c.truncate(r, path, last)
	}
	return p
}

// strange returns why a file without a manifest is not one of the server's. Anything may follow a snapshot, since the
// server does not read it: then the part ends with the snapshot.
func (c *checker) strange(file vfs.File, p *Part) error {
	if p.Size == 0 && !strings.HasSuffix(p.Name, ".aof") {
		return errEmpty
	}
	var first [1]byte
	if _, err := file.ReadAt(first[:], p.RDB); err != nil && err != io.EOF {
		return err
	}
	switch {
	case p.Size == p.RDB, first[0] == '*', first[0] == '#':
		return nil
	case p.RDB > 0:
		c.printf("%s: %d bytes behind the snapshot are not read", p.Name, p.Size-p.RDB)
		p.Size = p.RDB
		return nil
	}
	return errStrange
}

// rdb checks the RDB part of a file.
func (c *checker) rdb(file vfs.File, size int64) (int64, error) {
	if yes, err := isRDB(file); !yes {
		return 0, err
	}
	return c.RDB(file, size)
}

func (c *checker) describe(p Part) {
	line := fmt.Sprintf("%s: %d bytes", p.Name, p.Size)
	if p.RDB > 0 {
		line += fmt.Sprintf(", of them %d as RDB", p.RDB)
	}
	line += fmt.Sprintf(", %d commands in %d units", p.Facts.Commands, p.Facts.Units)
	if p.Facts.Marks > 0 {
		line += fmt.Sprintf(", %d bytes verified by %d marks, LSN %d to %d", p.Facts.Verified, p.Facts.Marks, p.Facts.First, p.Facts.Last)
	}
	if p.Facts.Closed {
		line += ", closed in order"
	}
	if p.Err == nil {
		line += ": ok"
	}
	c.printf("%s", line)
}

// mend cuts a damaged end.
func (c *checker) mend(p *Part, d *Damage, path string, last bool) {
	c.printf("%s", d)
	switch {
	case !last:
		c.printf("%s is not cut by --fix, because it is not the last file", p.Name)
		return
	case c.alone && p.Facts.Units == 0 && p.RDB == 0:
		c.printf("%s is not cut by --fix, because nothing in it is a command", p.Name)
		return
	case !c.Fix:
		c.printf("%s: --fix would cut %d bytes", p.Name, d.Size-d.Good)
		return
	}
	if err := c.cut(path, p.Name, d.Good, d.Size); err != nil {
		if err != errLeft {
			p.Err = err
		}
		return
	}
	p.Err, p.Cut = nil, d.Size-d.Good
	c.printf("%s: cut to %d bytes", p.Name, d.Good)
}

// truncate cuts a file where its reader stopped. The remaining part of a group becomes a group of its own.
func (c *checker) truncate(r *Reader, path string, last bool) (int64, error) {
	if r.offset() == 0 || r.facts.Units == 0 {
		return 0, fmt.Errorf("%s: nothing is in front of that time", r.name)
	}
	if !last {
		return 0, fmt.Errorf("%s is not cut, because it is not the last file", r.name)
	}
	kept := r.kept()
	size := r.Good()
	if err := c.cut(path, r.name, size+int64(len(kept)), r.size); err != nil {
		return 0, err
	}
	if err := cutFile(c.FS, path, size); err != nil {
		return 0, err
	}
	if len(kept) > 0 {
		m := r.group
		m.lsn -= LSN(m.length) - LSN(len(kept))
		m.length, m.crc = int64(len(kept)), crcOf(kept)
		text := append(blankMark[:len(blankMark):len(blankMark)], kept...)
		m.put(text[:markSize], size)
		if err := appendFile(c.FS, path, text); err != nil {
			return 0, err
		}
		size += int64(len(text))
	}
	c.printf("%s: cut to %d bytes", r.name, size)
	return r.size - size, nil
}

// cut truncates a file to a size, after Agree agreed, and keeps a copy of it.
func (c *checker) cut(path, name string, size, was int64) error {
	question := fmt.Sprintf("%s: %d of %d bytes would be cut off: all that was changed behind offset %d is lost", name, was-size, was, size)
	if c.Agree != nil && !c.Agree(question) {
		c.printf("%s: %v", name, errLeft)
		return errLeft
	}
	kept, err := c.keep(path)
	if err != nil {
		return err
	}
	c.printf("%s: a copy is %s", name, kept)
	return cutFile(c.FS, path, size)
}

// keep copies a file to an unused name.
func (c *checker) keep(path string) (kept string, err error) {
	for n := 0; ; n++ {
		kept = path + ".before-fix"
		if n > 0 {
			kept += fmt.Sprint(".", n)
		}
		if _, err := c.FS.Stat(kept); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	from, err := c.FS.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	size, err := from.Size()
	if err != nil {
		return "", err
	}
	to, err := c.FS.Create(kept)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, io.NewSectionReader(from, 0, size))
	if err == nil {
		err = to.Sync()
	}
	if e := to.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = c.FS.SyncDir(filepath.Dir(kept))
	}
	return kept, err
}

// kept is the part before pos of the group in which the reader stopped.
func (r *Reader) kept() []byte {
	if r.end == 0 {
		return nil
	}
	return r.buf[r.end-int(r.group.length) : r.pos]
}

// cutFile truncates a file to a size and syncs it: only when the cut bytes cannot come back may others be written there.
func cutFile(f vfs.FS, path string, size int64) error {
	return change(f, path, func(file vfs.File) error { return file.Truncate(size) })
}

func appendFile(f vfs.FS, path string, text []byte) error {
	return change(f, path, func(file vfs.File) error {
		_, err := file.Write(text)
		return err
	})
}

// change changes an existing file and syncs it.
func change(f vfs.FS, path string, how func(vfs.File) error) error {
	file, err := f.Append(path)
	if err != nil {
		return err
	}
	err = how(file)
	if err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}
