//go:build !linux

package vfs

// Syncing on systems other than Linux.

import "os"

func dataSync(f *os.File) error { return f.Sync() }
func syncDir(f *os.File) error  { return f.Sync() }
