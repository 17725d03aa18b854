package simfs

// What remains after a crash.

import (
	"bytes"
	"path"
	"slices"
)

// Crash stops the machine between two calls.
func (f *FS) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = true
}

// Restart starts the machine again. If power is true it had lost its power: unsynced data is there, gone or torn.
// Otherwise only the process had ended, and everything that it wrote is there. Open files are dead, and locks are gone.
func (f *FS) Restart(power bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if power {
		f.loseNames()
		for _, p := range f.paths() {
			if n := f.now[p]; !n.dir {
				f.loseBytes(n)
			}
		}
	}
	f.down = false
	f.life++
	f.locks = map[*node]bool{}
}

// paths are all paths. They are sorted so that a seed gives the same accidents each time.
func (f *FS) paths() []string {
	var paths []string
	for p := range f.now {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// loseNames decides which changes of names remain: a first part of them, as in a file system with a journal, or any
// subset.
func (f *FS) loseNames() {
	keep := func(int) bool { return true }
	switch f.rng.IntN(4) {
	case 0:
		keep = func(int) bool { return false }
	case 1:
		n := f.rng.IntN(len(f.changes) + 1)
		keep = func(i int) bool { return i < n }
	case 2:
		keep = func(int) bool { return f.rng.IntN(2) == 0 }
	}
	for i, c := range f.changes {
		if !keep(i) {
			continue
		}
		if c.gone != "" && f.disk[c.gone] == c.node {
			delete(f.disk, c.gone)
		}
		if c.made != "" {
			f.disk[c.made] = c.node
		}
	}
	f.changes = nil
	for p := range f.disk { // The content of a directory that does not remain is gone with it.
		for d := path.Dir(p); d != "/"; d = path.Dir(d) {
			if up := f.disk[d]; up == nil || !up.dir {
				delete(f.disk, p)
				break
			}
		}
	}
	f.now = map[string]*node{}
	for p, n := range f.disk {
		f.now[p] = n
	}
}

// loseBytes decides which bytes of a file remain: the synced content, the present one, a first part of it, or any
// sectors of it; and perhaps the bytes after the place where it was truncated.
func (f *FS) loseBytes(n *node) {
	old, now := n.disk, bytes.Clone(n.now)
	for s := range n.lost {
		to := sector(now, s)
		clear(to)
		copy(to, sector(old, s))
	}
	var left []byte
	switch f.rng.IntN(4) {
	case 0:
		left = bytes.Clone(old)
	case 1:
		left = now
	case 2:
		if len(now) >= len(old) && bytes.Equal(now[:len(old)], old) {
			left = now[:len(old)+f.rng.IntN(len(now)-len(old)+1)]
			break
		}
		fallthrough
	default:
		size := len(old)
		switch lo, hi := min(len(old), len(now)), max(len(old), len(now)); f.rng.IntN(3) {
		case 0:
			size = len(now)
		case 1:
			size = lo + f.rng.IntN(hi-lo+1)
		}
		left = make([]byte, size)
		for s := range sectors(left, nil) {
			from := old
			if f.rng.IntN(2) == 0 {
				from = now
			}
			copy(sector(left, s), sector(from, s))
		}
	}
	if len(n.cut) > len(now) && f.rng.IntN(2) == 0 { // the truncation did not reach the disk
		left = make([]byte, len(n.cut))
		for s := range sectors(left, nil) {
			from := n.cut
			if s*Sector < len(now) && f.rng.IntN(2) == 0 {
				from = now
			}
			copy(sector(left, s), sector(from, s))
		}
	}
	n.now, n.disk, n.lost, n.cut = left, bytes.Clone(left), nil, nil
}
