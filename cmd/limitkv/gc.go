package main

// How often memory is collected, and when it goes back to the system. All settings of the runtime are made here, for they
// are the process's: a program that has a server inside keeps its own.
//
// Go collects when the heap has doubled. A small heap doubles several times a second under load, and for each collection
// the loops wait: with a heap of 4 MB, one request in a thousand took 3 ms instead of 1. So garbage may grow to garbageMin
// before it is collected, however small the heap is.
//
// After a peak – a large script, a request of hundreds of megabytes – Go would keep what it had then: it does not collect
// while little is allocated, and gives memory back at 1 % of a core, which takes minutes for a gigabyte. So somebody looks
// every second, which takes 10 µs, how much memory the process has for what is in use.

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
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

const (
	keepEvery = time.Second
	// keepShare is the part of the time that giving memory back may take: one in keepShare. It is not put off for that for
	// longer than keepRest. Where there was little to be had – a script still has it, or what is in use lies scattered – it
	// rests for keepRest, and twice as long each time, up to keepRestMax, or until the process has an eighth more, or an
	// eighth less in use: a value that was deleted goes at once.
	keepShare, keepRest, keepRestMax = 20, 5 * time.Second, time.Minute
	// Memory that the process has beyond keepTimes what is in use and keepMore is given back while little is allocated; the
	// rest is for what runs beside. Under load, when garbage is to be expected, there may be busyTimes and busyMore.
	keepTimes, keepMore = 1.4, 48 << 20
	busyTimes, busyMore = 2.2, 128 << 20
	// quietBytes is how much may be allocated in keepEvery for that to be little.
	quietBytes = 16 << 20
	// A server that allocates less than idleBytes has nothing to do, and what it has been filled with is likely to stay. So it
	// keeps idleTimes and idleMore, once: not again before it has an eighth more, or has an eighth less in use. Measured after a
	// million keys: 165 MB became 118 where a script made them, a sorted set's 97 MB became 72.
	idleBytes           = 1 << 20
	idleTimes, idleMore = 1.1, 8 << 20
	// limitHeadroom is above maxmemory, an eighth of which is added, what the runtime holds itself to.
	limitHeadroom = 64 << 20
)

// keeper keeps the process's memory near to what is in use.
type keeper struct {
	freed        chan struct{}
	runtimeLimit int64
	samples      []metrics.Sample

	had, allocated uint64        // when it looked last
	next           time.Time     // when memory may be given back again
	soonest        time.Time     // when it may be given back for a change
	rest           time.Duration // for how long it rested, there having been little to be had
	lastLimit      int64
	left, leftUsed uint64 // what it had, and what was in use, after memory was given back
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

// tell says that there is much garbage now.
func (k *keeper) tell() {
	select {
	case k.freed <- struct{}{}:
	default: // it has been said
	}
}

// keep looks after the process's memory. used is how many bytes are in use, limit is maxmemory.
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

// look gives memory back if the process has too much of it. garbage says that there is much.
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
		return // while it grows, what there is is wanted
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

// has is how much memory the process has of the system, and how much it has ever allocated.
func (k *keeper) has() (bytes, allocated uint64) {
	metrics.Read(k.samples)
	return k.samples[0].Value.Uint64() - k.samples[1].Value.Uint64(), k.samples[2].Value.Uint64()
}
