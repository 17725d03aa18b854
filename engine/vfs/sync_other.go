//go:build !linux

package vfs

// Syncing elsewhere than on Linux.

import "os"

func dataSync(f *os.File) error { return f.Sync() }
func syncDir(f *os.File) error  { return f.Sync() }
