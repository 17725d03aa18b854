package main

// How often memory is collected. Go collects when the heap has doubled. A small heap doubles several times a second under
// load, and for each collection the loops wait: with a heap of 4 MB, one request in a thousand took 3 ms instead of 1.
// So garbage may grow to garbageMin before it is collected, however small the heap is.

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbageMin is the garbage in bytes that is not worth a collection.
const garbageMin = 32 << 20

// gcPercent is Go's own: for large heaps, the garbage may grow to the size of what lives.
const gcPercent = 100

// sentinel is what is found unused by each collection. It has a pointer: small objects without one share their memory, so
// that a finalizer may never run.
type sentinel struct{ _ *sentinel }

// paceGC sets when to collect anew after each collection. GOGC in the environment turns it off.
func paceGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	last := gcPercent
	var again func(*sentinel)
	again = func(*sentinel) {
		metrics.Read(live)
		percent := gcPercent
		if n := live[0].Value.Uint64(); n < garbageMin {
			percent = int(garbageMin * 100 / max(n, 4<<20)) // at most 800: the heap may grow before the next collection
		}
		// Setting it stops the world for a moment.
		if percent > last+last/4 || percent < last-last/4 {
			last = percent
			debug.SetGCPercent(percent)
		}
		runtime.SetFinalizer(new(sentinel), again) // runs after the next collection
	}
	again(nil)
}
