package journal

// The memory of the writer's buffers.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/vfs"
)

// TestBuffersShrink checks that the buffers free the memory that they needed while the disk was stalled, and keep what
// every write needs.
func TestBuffersShrink(t *testing.T) {
	o := place(vfs.OS, t.TempDir())
	f, l, w := start(t, o, WriterOptions{Checksums: true})
	room := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		return max(cap(w.front.text), cap(w.back.text))
	}
	write := func(n, size int) {
		t.Helper()
		w.mu.Lock() // all batches come while the disk is stalled
		for i := range n {
			l.Append(one("SET", fmt.Sprint(i), strings.Repeat("x", size)))
		}
		w.mu.Unlock()
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{1 << 20, 20 << 20} {
		write(size>>10, 1<<10)
		if size < keepMax && room() < size/2 {
			t.Errorf("%d bytes are kept of %d that may come again", room(), size)
		}
		if room() > keepMax {
			t.Errorf("%d bytes are kept", room())
		}
		for range 120 {
			write(10, 100)
		}
		if room() > keepMin {
			t.Errorf("after %d bytes at once and 120 small writes %d are kept", size, room())
		}
	}
	for range 10 {
		write(1000, 500)
	}
	had := room()
	for range 100 {
		write(1000, 500)
	}
	if had < 500_000 || room() != had {
		t.Errorf("the room of like writes was %d, and is %d", had, room())
	}
	closeAll(t, f)
}
