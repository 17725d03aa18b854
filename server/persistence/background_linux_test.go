package persistence

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestShortSlices reads the thread's slice before, while and after it is short.
func TestShortSlices(t *testing.T) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := func() *unix.SchedAttr {
			attr, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				return &unix.SchedAttr{}
			}
			return attr
		}
		before := look()
		restore := inShortSlices()
		during := look()
		offer()
		restore()
		after := look()
		if before.Runtime == 0 {
			t.Log("the system knows no slices of a thread's own")
		} else if during.Runtime != sliceNanos {
			t.Errorf("slices of %d ns, want %d; before: %d", during.Runtime, sliceNanos, before.Runtime)
		}
		if *after != *before {
			t.Errorf("after it: %+v, before: %+v", after, before)
		}
		during.Runtime = before.Runtime
		if *during != *before {
			t.Errorf("more than the slices has changed: %+v, before: %+v", during, before)
		}
	}()
	<-ended
}
