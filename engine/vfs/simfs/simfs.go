// Package simfs, internal to the server's tests, is a simulated file system in memory. A seed decides its accidents. It
// can fail or crash at any call. After a power failure, everything that was synced is there. Each sector and each name
// that was not synced is old, new or lost, as disks and file systems may leave it.
//
// A failed sync may lose its data even if a later sync succeeds, as on Linux.
package simfs

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"sync"

	"github.com/limitkv/limitkv/engine/vfs"
)

// Sector is the unit that a disk writes atomically.
const Sector = 512

// Kind is a kind of call.
type Kind int

// The kinds of calls.
const (
	Open Kind = iota
	Create
	Append
	Rename
	Remove
	Mkdir
	SyncDir
	Stat
	ReadDir
	Lock
	Read
	Write
	Size
	Truncate
	Sync
)

// Call is one call, numbered from 1 since the file system was made.
type Call struct {
	N    int
	Kind Kind
	Path string
}

// Accident is what happens at a call.
type Accident struct {
	// Err makes the call fail. A write first writes Bytes of its bytes.
	Err   error
	Bytes int
	// Crash stops the machine during the call, which takes effect only in part: every call returns ErrCrashed until
	// Restart.
	Crash bool
}

// ErrCrashed is what every call returns between a crash and Restart.
var ErrCrashed = errors.New("simfs: the machine is down")

// FS is a simulated file system.
type FS struct {
	mu      sync.Mutex
	plan    func(Call) Accident
	during  func(path string)
	rng     *rand.Rand
	calls   int
	down    bool
	life    int // counts restarts: files opened before the last one are dead
	now     map[string]*node
	disk    map[string]*node // the synced names
	changes []change         // changes of names that are not synced yet
	locks   map[*node]bool
}

// node is a file or a directory.
type node struct {
	dir  bool
	now  []byte
	disk []byte // the synced bytes
	// cut is the content before the file was truncated, nil if the truncation is synced: until then the bytes may come
	// back.
	cut []byte
	// lost are the sectors that a failed sync dropped: they are written again only if they change again.
	lost map[int]bool
}

// change is one change of names. A rename sets both made and gone, other changes one of them.
type change struct {
	made, gone string
	node       *node
}

// New returns an empty file system with a root directory.
func New(seed uint64) *FS {
	f := &FS{rng: rand.New(rand.NewPCG(seed, 0x51f5)), now: map[string]*node{}, disk: map[string]*node{}, locks: map[*node]bool{}}
	root := &node{dir: true}
	f.now["/"], f.disk["/"] = root, root
	return f
}

// Plan sets the function that chooses the accident at each call; with nil there are none. It is called under the file
// system's lock.
func (f *FS) Plan(plan func(Call) Accident) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// During sets a function that is called during each Sync, without the lock: it may write to the file, or take its time.
func (f *FS) During(during func(path string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.during = during
}

// Calls is the number of calls so far.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Down reports whether the machine has crashed.
func (f *FS) Down() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

func clean(p string) string {
	if !path.IsAbs(p) {
		p = "/" + p
	}
	return path.Clean(p)
}

func fault(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }

// begin counts a call and asks the plan. The lock is held.
func (f *FS) begin(kind Kind, p string) (Accident, error) {
	if f.down {
		return Accident{}, ErrCrashed
	}
	f.calls++
	if f.plan == nil {
		return Accident{}, nil
	}
	a := f.plan(Call{f.calls, kind, p})
	if a.Crash {
		f.down = true
		a.Err = ErrCrashed
	} else if a.Err != nil {
		a.Err = fault("simulated", p, a.Err)
	}
	return a, nil
}

// simple begins a call that takes effect completely or not at all; at a crash, at random.
func (f *FS) simple(kind Kind, p string) (done func(error) error, err error) {
	a, err := f.begin(kind, p)
	if err != nil {
		return nil, err
	}
	if a.Err != nil && (!a.Crash || f.rng.IntN(2) == 0) {
		return nil, a.Err
	}
	return func(err error) error {
		if a.Crash {
			return ErrCrashed
		}
		return err
	}, nil
}

// inDir returns an error if the directory of a path does not exist.
func (f *FS) inDir(op, p string) error {
	if d := f.now[path.Dir(p)]; d == nil {
		return fault(op, p, fs.ErrNotExist)
	} else if !d.dir {
		return fault(op, p, errors.New("not a directory"))
	}
	return nil
}

func (f *FS) open(kind Kind, p string) (vfs.File, error) {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(kind, p)
	if err != nil {
		return nil, err
	}
	if err := f.inDir("open", p); err != nil {
		return nil, done(err)
	}
	n := f.now[p]
	switch {
	case n != nil && n.dir:
		return nil, done(fault("open", p, errors.New("is a directory")))
	case n == nil && kind == Open:
		return nil, done(fault("open", p, fs.ErrNotExist))
	case n == nil:
		n = &node{}
		f.now[p] = n
		f.changes = append(f.changes, change{made: p, node: n})
	case kind == Create:
		n.truncate(0)
	}
	if err := done(nil); err != nil {
		return nil, err
	}
	return &file{fs: f, node: n, path: p, life: f.life, writes: kind != Open}, nil
}

// Open implements vfs.FS.
func (f *FS) Open(p string) (vfs.File, error) { return f.open(Open, p) }

// Create implements vfs.FS.
func (f *FS) Create(p string) (vfs.File, error) { return f.open(Create, p) }

// Append implements vfs.FS.
func (f *FS) Append(p string) (vfs.File, error) { return f.open(Append, p) }

// Rename implements vfs.FS. Only files are renamed.
func (f *FS) Rename(from, to string) error {
	from, to = clean(from), clean(to)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(Rename, from)
	if err != nil {
		return err
	}
	n := f.now[from]
	if n == nil || n.dir {
		return done(fault("rename", from, fs.ErrNotExist))
	}
	if err := f.inDir("rename", to); err != nil {
		return done(err)
	}
	delete(f.now, from)
	f.now[to] = n
	f.changes = append(f.changes, change{made: to, gone: from, node: n})
	return done(nil)
}

// Remove implements vfs.FS.
func (f *FS) Remove(p string) error {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(Remove, p)
	if err != nil {
		return err
	}
	n := f.now[p]
	if n == nil {
		return done(fault("remove", p, fs.ErrNotExist))
	}
	if n.dir && len(f.names(p)) > 0 {
		return done(fault("remove", p, errors.New("directory not empty")))
	}
	delete(f.now, p)
	f.changes = append(f.changes, change{gone: p, node: n})
	return done(nil)
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(p string) error {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(Mkdir, p)
	if err != nil {
		return err
	}
	if n := f.now[p]; n != nil {
		if n.dir {
			return done(nil)
		}
		return done(fault("mkdir", p, fs.ErrExist))
	}
	if err := f.inDir("mkdir", p); err != nil {
		return done(err)
	}
	n := &node{dir: true}
	f.now[p] = n
	f.changes = append(f.changes, change{made: p, node: n})
	return done(nil)
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(p string) error {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := f.begin(SyncDir, p)
	if err != nil {
		return err
	}
	if n := f.now[p]; n == nil || !n.dir {
		return fault("sync", p, fs.ErrNotExist)
	}
	if a.Err != nil {
		return a.Err // Unsynced changes stay unsynced; Restart decides about them.
	}
	rest := f.changes[:0:0]
	for _, c := range f.changes {
		switch {
		case c.made != "" && path.Dir(c.made) == p:
			f.disk[c.made] = c.node
			if c.gone != "" && path.Dir(c.gone) != p {
				rest = append(rest, change{gone: c.gone, node: c.node})
				continue
			}
			fallthrough
		case c.gone != "" && path.Dir(c.gone) == p:
			if c.gone != "" && f.disk[c.gone] == c.node {
				delete(f.disk, c.gone)
			}
			if c.made != "" {
				f.disk[c.made] = c.node // A rename to another directory is one change to the file system.
			}
		default:
			rest = append(rest, c)
		}
	}
	f.changes = rest
	return nil
}

// Stat implements vfs.FS.
func (f *FS) Stat(p string) (vfs.Info, error) {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(Stat, p)
	if err != nil {
		return vfs.Info{}, err
	}
	n := f.now[p]
	if n == nil {
		return vfs.Info{}, done(fault("stat", p, fs.ErrNotExist))
	}
	return vfs.Info{Size: int64(len(n.now)), Dir: n.dir}, done(nil)
}

// names are the sorted names in a directory.
func (f *FS) names(dir string) []string {
	var names []string
	for p := range f.now {
		if p != "/" && path.Dir(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(p string) ([]string, error) {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(ReadDir, p)
	if err != nil {
		return nil, err
	}
	if n := f.now[p]; n == nil || !n.dir {
		return nil, done(fault("readdir", p, fs.ErrNotExist))
	}
	return f.names(p), done(nil)
}

// lock is a locked directory.
type lock struct {
	fs   *FS
	dir  *node
	life int
}

// Lock implements vfs.FS.
func (f *FS) Lock(p string) (vfs.Lock, error) {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.simple(Lock, p)
	if err != nil {
		return nil, err
	}
	n := f.now[p]
	if n == nil || !n.dir {
		return nil, done(fault("flock", p, fs.ErrNotExist))
	}
	if f.locks[n] {
		return nil, done(vfs.ErrLocked)
	}
	f.locks[n] = true
	return lock{f, n, f.life}, done(nil)
}

// Holds implements vfs.Lock.
func (l lock) Holds(dir string) (bool, error) {
	return l.fs.is(l.dir, l.life, dir)
}

// is reports whether a path leads to a file or directory that was opened in a given life of the file system.
func (f *FS) is(n *node, life int, p string) (bool, error) {
	p = clean(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if life != f.life {
		return false, ErrCrashed
	}
	done, err := f.simple(Stat, p)
	if err != nil {
		return false, err
	}
	there := f.now[p]
	if there == nil {
		return false, done(fault("stat", p, fs.ErrNotExist))
	}
	return there == n, done(nil)
}

func (l lock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.life == l.fs.life {
		delete(l.fs.locks, l.dir)
	}
	return nil
}
