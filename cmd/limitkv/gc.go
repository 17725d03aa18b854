package main

// How often garbage is collected, and when memory is returned to the system. All settings of the Go runtime are made here,
// since they belong to the process: a program that embeds a server keeps its own.
//
// Go collects when the heap has doubled. A small heap doubles several times a second under load, and the loops wait for each
// collection: with a heap of 4 MB, one request in a thousand took 3 ms instead of 1. So garbage may grow to garbageMin before
// it is collected, however small the heap is.
//
// After a peak, such as a large script or a request of hundreds of megabytes, Go would keep that memory. It does not collect
// while little is allocated, and it returns memory at 1 % of a core, which takes minutes for a gigabyte. So keeper compares
// once a second the memory of the process with the memory in use, which takes 10 µs.

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// garbageMin is how many bytes of garbage are not worth a collection.
const garbageMin = 32 << 20

// gcPercent is Go's default: for large heaps, garbage may grow to the size of the live heap.
const gcPercent = 100

// sentinel is an object that each collection finds unused. It has a pointer, since small objects without one share their
// memory, so that a finalizer may never run.
type sentinel struct{ _ *sentinel }

// paceGC sets GOGC again after each collection. If GOGC is set in the environment, it does nothing.
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
			percent = int(garbageMin * 100 / max(n, 4<<20)) // at most 800, since the live heap may grow before the next collection
		}
		// SetGCPercent stops the world for a moment.
		if percent > last+last/4 || percent < last-last/4 {
			last = percent
			debug.SetGCPercent(percent)
		}
		runtime.SetFinalizer(new(sentinel), again) // runs after the next collection
	}
	again(nil)
}

const (
	keepEvery = time.Second
	// keepShare limits the time for returning memory to one part in keepShare, with a pause of at most keepRest. If there was
	// little to return, because a script still uses it or the memory in use is scattered, the next try is after keepRest, and
	// each time twice as long, up to keepRestMax. Such a pause ends early if the process has an eighth more memory, or an
	// eighth less in use: a deleted value is returned at once.
	keepShare, keepRest, keepRestMax = 20, 5 * time.Second, time.Minute
	// Memory beyond keepTimes the memory in use plus keepMore is returned while little is allocated; the margin is for all
	// else. Under load, when more garbage is normal, busyTimes and busyMore apply.
	keepTimes, keepMore = 1.4, 48 << 20
	busyTimes, busyMore = 2.2, 128 << 20
	// quietBytes is the limit of "little allocated", per keepEvery.
	quietBytes = 16 << 20
	// A server that allocates less than idleBytes is idle, and its data is likely to stay. Then idleTimes and idleMore apply,
	// but only once, until the process has an eighth more memory or an eighth less in use. Measured after a million keys: 165
	// MB became 118 when a script had made them; 97 MB of a sorted set became 72.
	idleBytes           = 1 << 20
	idleTimes, idleMore = 1.1, 8 << 20
	// The memory limit of the runtime is maxmemory, an eighth of that, and limitHeadroom.
	limitHeadroom = 64 << 20
)

// keeper keeps the process's memory close to the memory in use.
type keeper struct {
	freed        chan struct{}
	runtimeLimit int64
	samples      []metrics.Sample

	had, allocated uint64        // at the last look
	next           time.Time     // when memory may be returned again
	soonest        time.Time     // the same after a change
	rest           time.Duration // the last pause, after little was returned
	lastLimit      int64
	left, leftUsed uint64 // the memory of the process and the memory in use after the last return
}

func newKeeper() *keeper {
	return &keeper{
		freed:        make(chan struct{}, 1),
		runtimeLimit: debug.SetMemoryLimit(-1),
		samples: []metrics.Sample{
			{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		},
	}
}

// tell reports that there is much garbage now.
func (k *keeper) tell() {
	select {
	case k.freed <- struct{}{}:
	default: // already reported
	}
}

// keep runs keeper's loop. used returns the memory in use, limit returns maxmemory.
func (k *keeper) keep(used, limit func() int64) {
	tick := time.NewTicker(keepEvery)
	for {
		select {
		case <-tick.C:
			k.look(used(), limit(), false)
		case <-k.freed:
			k.look(used(), limit(), true)
		}
	}
}

// look returns memory if the process has too much. garbage tells that there is much garbage.
func (k *keeper) look(used, limit int64, garbage bool) {
	if n := limit; n != k.lastLimit {
		k.lastLimit = limit
		if n == 0 || n > k.runtimeLimit/2 {
			n = k.runtimeLimit
		} else {
			n = min(k.runtimeLimit, n+n/8+limitHeadroom)
		}
		debug.SetMemoryLimit(n)
	}
	has, allocated := k.has()
	quiet, grows := allocated-k.allocated < quietBytes, has > k.had+k.had/8
	changed := has > k.left+k.left/8 || uint64(used) < k.leftUsed-k.leftUsed/8
	idle := allocated-k.allocated < idleBytes && changed
	k.had, k.allocated = has, allocated
	times, more := busyTimes, float64(busyMore)
	switch {
	case idle:
		times, more = idleTimes, idleMore
	case quiet || garbage:
		times, more = keepTimes, keepMore
	}
	began := time.Now()
	next := k.next
	if changed {
		next = k.soonest
	}
	if float64(has) <= float64(used)*times+more || grows && !quiet || began.Before(next) {
		return // while it grows, the memory is needed
	}
	debug.FreeOSMemory()
	k.had, k.allocated = k.has()
	k.left, k.leftUsed = k.had, uint64(used)
	k.soonest = began.Add(min(keepShare*time.Since(began), keepRest))
	if k.had < has-has/8 {
		k.rest = 0
		k.next = k.soonest
	} else {
		k.rest = min(max(2*k.rest, keepRest), keepRestMax)
		k.next = time.Now().Add(k.rest)
	}
}

// has returns the memory that the process has from the system, and the total it has ever allocated.
func (k *keeper) has() (bytes, allocated uint64) {
	metrics.Read(k.samples)
	return k.samples[0].Value.Uint64() - k.samples[1].Value.Uint64(), k.samples[2].Value.Uint64()
}
