//go:build !linux

package alarm

// Systems without timer descriptors use the runtime's timers.

import "time"

type descriptor struct{}

func (t *descriptor) open()               {}
func (t *descriptor) ok() bool            { return false }
func (t *descriptor) set(d time.Duration) {}
func (t *descriptor) wait()               {}
func (t *descriptor) close()              {}
