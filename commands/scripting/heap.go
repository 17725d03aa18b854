package scripting

// The memory that a script may take: script-memory-max. Nobody counts what an interpreter allocates, so it is what the heap
// has grown by since the script began to take long, or first asked for much at once. Two parts of that are not the script's:
//
//   - Keys. To write them is what scripts are for, and maxmemory limits them.
//   - Garbage. Beside large data the collector lets gigabytes of it gather, of which a script that keeps nothing may make
//     the most. So before a script is ended the heap is collected, and what is left decides.

import (
	"runtime"
	"runtime/metrics"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

const (
	// memoryMicros is how often the memory of long scripts is looked at.
	memoryMicros = 20_000
	// limitShare and heapShare are parts, one in so many, of the limit and of the heap. As much is allocated at least between
	// two collections that look for a script's memory, and a script may so exceed its limit: to collect for each little
	// growth would take all processors.
	limitShare, heapShare = 4, 8
)

// scriptHeap is what the heap was, without the keys, in bytes. It may be negative: the size of keys is estimated.
type scriptHeap struct {
	begun     bool
	first     int64 // when it was looked at first
	collected int64 // when it was last collected for the script, or first
}

// room tells whether a script may take so many bytes more than it has.
func (w *watch) room(more int) bool {
	if w.c == nil {
		return true // a library is loaded
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
		w.attend(engine.Monotonic()) // to collect takes long
	}
	runtime.GC()
	_, h.collected = heapOf(w.c)
	return h.collected+int64(more) <= h.first+most
}

// heapOf is what the heap holds, and how much of that is not keys.
func heapOf(c *command.Ctx) (all, others int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	all = int64(sample[0].Value.Uint64())
	return all, all - c.KeysBytes()
}
