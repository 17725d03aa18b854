//go:build !linux

package persistence

// What background_linux.go does, for systems that have no slices of a thread's own.

import "runtime"

func inShortSlices() (restore func()) { return func() {} }

func offer() { runtime.Gosched() }
