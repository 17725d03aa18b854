package simfs

// Open files of the simulated file system.

import (
	"bytes"
	"io"
	"io/fs"
)

type file struct {
	fs     *FS
	node   *node
	path   string
	life   int
	writes bool
	closed bool
}

// begin begins a call on an open file. The lock is held.
func (f *file) begin(kind Kind) (Accident, error) {
	if f.closed {
		return Accident{}, fault("use", f.path, fs.ErrClosed)
	}
	if f.life != f.fs.life {
		return Accident{}, ErrCrashed
	}
	return f.fs.begin(kind, f.name())
}

// name is the file's present path.
func (f *file) name() string {
	if f.fs.now[f.path] != f.node {
		for p, n := range f.fs.now {
			if n == f.node {
				f.path = p
			}
		}
	}
	return f.path
}

func (f *file) Is(path string) (bool, error) { return f.fs.is(f.node, f.life, path) }

func (f *file) ReadAt(p []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	a, err := f.begin(Read)
	if err == nil {
		err = a.Err
	}
	if err != nil {
		return 0, err
	}
	if at >= int64(len(f.node.now)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.now[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(p []byte) (int, error) { return f.write(p, -1) }

func (f *file) WriteAt(p []byte, at int64) (int, error) { return f.write(p, int(at)) }

// write writes at an offset, or at the end if at is negative.
func (f *file) write(p []byte, at int) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	a, err := f.begin(Write)
	if err != nil {
		return 0, err
	}
	if !f.writes {
		return 0, fault("write", f.path, fs.ErrPermission)
	}
	n := len(p)
	switch {
	case a.Crash:
		n = f.fs.rng.IntN(len(p) + 1)
	case a.Err != nil:
		n = min(a.Bytes, len(p))
	}
	if at < 0 {
		at = len(f.node.now)
	}
	f.node.change(at, at+n)
	now := make([]byte, max(len(f.node.now), at+n), max(2*len(f.node.now), at+n))
	copy(now, f.node.now)
	copy(now[at:], p[:n])
	f.node.now = now
	return n, a.Err
}

// change is called before bytes change: their sectors become dirty again.
func (n *node) change(from, to int) {
	for s := range n.lost {
		if s >= from/Sector && s*Sector < to {
			delete(n.lost, s)
		}
	}
}

func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	a, err := f.begin(Size)
	if err == nil {
		err = a.Err
	}
	return int64(len(f.node.now)), err
}

func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	a, err := f.begin(Truncate)
	if err != nil {
		return err
	}
	if !f.writes {
		return fault("truncate", f.path, fs.ErrPermission)
	}
	if a.Err != nil && (!a.Crash || f.fs.rng.IntN(2) == 0) {
		return a.Err
	}
	f.node.truncate(int(size))
	return a.Err
}

func (n *node) truncate(size int) {
	n.change(size, len(n.now))
	if len(n.now) > max(size, len(n.cut)) {
		n.cut = n.now
	}
	now := make([]byte, size)
	copy(now, n.now)
	n.now = now
}

func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	a, err := f.begin(Sync)
	if err != nil {
		return err
	}
	// The sync does not cover bytes that are written while it runs.
	now := f.node.now[:len(f.node.now):len(f.node.now)]
	cut := len(f.node.cut)
	if during := f.fs.during; during != nil {
		f.fs.mu.Unlock()
		during(f.path)
		f.fs.mu.Lock()
		if f.fs.down && !a.Crash || f.life != f.fs.life {
			return ErrCrashed
		}
	}
	switch {
	case a.Crash:
		return ErrCrashed
	case a.Err != nil:
		f.fs.giveUp(f.node)
		return a.Err
	}
	f.node.safe(now)
	if len(f.node.cut) == cut { // no truncation came meanwhile
		f.node.cut = nil
	}
	return nil
}

// safe makes now the content of the disk, except in lost sectors.
func (n *node) safe(now []byte) {
	disk := bytes.Clone(now)
	for s := range n.lost {
		old, to := sector(n.disk, s), sector(disk, s)
		clear(to)
		copy(to, old)
	}
	n.disk = disk
}

// giveUp simulates a sync that fails: each sector was either written, or is lost unless it changes again.
func (f *FS) giveUp(n *node) {
	if n.lost == nil {
		n.lost = map[int]bool{}
	}
	for s := range sectors(n.now, n.disk) {
		if bytes.Equal(sector(n.now, s), sector(n.disk, s)) {
			continue
		}
		n.lost[s] = n.lost[s] || f.rng.IntN(2) == 0
		if !n.lost[s] {
			delete(n.lost, s)
		}
	}
	n.safe(n.now)
}

// sectors is the number of sectors of the longer of two contents.
func sectors(a, b []byte) int { return (max(len(a), len(b)) + Sector - 1) / Sector }

// sector is the part of a content that is in a sector.
func sector(text []byte, s int) []byte {
	from := min(s*Sector, len(text))
	return text[from:min(from+Sector, len(text))]
}

func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return fault("close", f.path, fs.ErrClosed)
	}
	f.closed = true
	return nil
}
