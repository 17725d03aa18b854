package scripting

// The memory that a script may take: script-memory-max. An interpreter does not count what it allocates. So the measure is
// how much the heap has grown since the script began to take long, or first asked for much at once. Two parts of that growth
// are not the script's:
//
//   - Keys. Scripts are there to write keys, and maxmemory limits those.
//   - Garbage. Beside large data the collector lets gigabytes of it gather, and a script that keeps nothing may make most
//     of it. So the heap is collected before a script is ended, and the size after that decides.

import (
	"runtime"
	"runtime/metrics"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

const (
	// memoryMicros is how often the memory of long scripts is checked.
	memoryMicros = 20_000
	// limitShare and heapShare are fractions, one in so many, of the limit and of the heap. At least that much is allocated
	// between two collections that check a script's memory, so a script may exceed its limit by as much. Collecting after
	// each small growth would occupy all processors.
	limitShare, heapShare = 4, 8
)

// scriptHeap is the size of the heap without the keys, in bytes. It may be negative, because the size of keys is estimated.
type scriptHeap struct {
	begun     bool
	first     int64 // at the first check
	collected int64 // after the last collection for the script, or at the first check
}

// room reports whether a script may take that many more bytes.
func (w *watch) room(more int) bool {
	if w.c == nil {
		return true // no script runs: a library is loaded
	}
	h, most := &w.heap, w.f.memoryMax.Load()
	heap, now := heapOf(w.c)
	if !h.begun {
		*h = scriptHeap{true, now, now}
	}
	if int64(more) > most {
		return false
	}
	now += int64(more)
	if now <= max(h.first+most, h.collected+max(most/limitShare, heap/heapShare)) {
		return true
	}
	if w.run == nil {
		w.attend(engine.Monotonic()) // a collection takes long
	}
	runtime.GC()
	_, h.collected = heapOf(w.c)
	return h.collected+int64(more) <= h.first+most
}

// heapOf returns the size of the heap, and how much of it is not keys.
func heapOf(c *command.Ctx) (all, others int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	all = int64(sample[0].Value.Uint64())
	return all, all - c.KeysBytes()
}
