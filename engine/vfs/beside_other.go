//go:build !linux

package vfs

// Systems other than Linux have no syncs in the background.

// newBeside returns nil: the system does not support it.
func newBeside() Beside { return nil }
