//go:build !linux

package persistence

// Does what background_linux.go does on systems where a thread cannot choose its slices.

import "runtime"

func inShortSlices() (restore func()) { return func() {} }

func offer() { runtime.Gosched() }
