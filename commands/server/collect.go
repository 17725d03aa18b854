package server

// Collecting garbage when there is reason to think that there is much.

import (
	"runtime"
	"sync"

	"github.com/limitkv/limitkv/engine"
)

const (
	// collectShare is the part of the time that collections may take: one in collectShare.
	collectShare = 10
	// collectBurst is for how many microseconds they may save that up.
	collectBurst = 2_000_000
)

// collector collects garbage beside the commands.
type collector struct {
	mu         sync.Mutex
	collecting bool
	nextTime   int64 // when the next collection may begin, on the monotonic clock
}

// collect begins a collection, unless that was done too often lately.
func (g *collector) collect() {
	g.mu.Lock()
	defer g.mu.Unlock()
	began := engine.Monotonic()
	if g.collecting || began < g.nextTime {
		return
	}
	g.collecting = true
	go func() {
		runtime.GC()
		g.mu.Lock()
		g.nextTime = max(g.nextTime, began-collectBurst) + collectShare*(engine.Monotonic()-began)
		g.collecting = false
		g.mu.Unlock()
	}()
}
