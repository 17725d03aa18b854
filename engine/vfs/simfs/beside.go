package simfs

// Syncs that run beside.

import "github.com/limitkv/limitkv/engine/vfs"

// Beside is vfs.Beside. A sync happens when who began it is told of its end: before, nothing is safe.
type Beside struct {
	// Runs, if set, says whether a sync that is asked for runs still.
	Runs func() bool
	file vfs.File
}

// Beside returns nil: who wants syncs to run beside has them run by the type Beside, which a test steps.
func (fs *FS) Beside() vfs.Beside { return nil }

// Begin and the others are those of vfs.Beside.
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
