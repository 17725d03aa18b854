package simfs

// Syncs in the background.

import "github.com/limitkv/limitkv/engine/vfs"

// Beside implements vfs.Beside. A sync takes place when Ended or Wait returns its end: before that, nothing is synced.
type Beside struct {
	// Runs, if set, decides whether Ended finds the sync still running.
	Runs func() bool
	file vfs.File
}

// Beside returns nil: a test that wants syncs in the background uses the type Beside, which it steps itself.
func (fs *FS) Beside() vfs.Beside { return nil }

// Begin and the other methods implement vfs.Beside.
func (b *Beside) Begin(f vfs.File) bool {
	b.file = f
	return true
}

func (b *Beside) Ended() (bool, error) {
	if b.Runs != nil && b.Runs() {
		return false, nil
	}
	return true, b.Wait()
}

func (b *Beside) Wait() error     { return b.file.Sync() }
func (b *Beside) Descriptor() int { return -1 }
func (b *Beside) Close() error    { return nil }
