package persistence

// The reply gate: a reply leaves when what it tells of is as safe as the user asked
// for. With appendfsync always that is when it is synced; otherwise at once. Event
// loops do not wait: what has to is kept here and posted back.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/journal"
)

type gate struct {
	on     *atomic.Bool                   // replies are held: the keyspace's Gated
	writer atomic.Pointer[journal.Writer] // nil: nothing is held
	mu     sync.Mutex
	queue  []held // by place
}

type held struct {
	at journal.LSN
	fn func()
}

// set has the gate go by a writer, nil for none.
func (g *gate) set(w *journal.Writer) {
	if w != nil && w.Policy() != journal.Always {
		w = nil
	}
	g.writer.Store(w)
	g.on.Store(w != nil)
	g.release()
}

// Confirmed is the place up to which replies may leave.
func (g *gate) Confirmed() journal.LSN {
	if w := g.writer.Load(); w != nil {
		return w.Confirmed()
	}
	return journal.MaxLSN
}

// After calls fn when a place is confirmed, perhaps at once. Of one place, and of
// later ones, they are called in the order in which they came.
func (g *gate) After(at journal.LSN, fn func()) {
	g.mu.Lock()
	if len(g.queue) == 0 && at <= g.Confirmed() {
		g.mu.Unlock()
		fn()
		return
	}
	i := len(g.queue)
	for i > 0 && g.queue[i-1].at > at {
		i--
	}
	g.queue = append(g.queue, held{})
	copy(g.queue[i+1:], g.queue[i:])
	g.queue[i] = held{at, fn}
	g.mu.Unlock()
	g.release() // it may have been confirmed since
}

// release lets go what is confirmed.
func (g *gate) release() {
	g.mu.Lock()
	upTo := g.Confirmed()
	n := 0
	for n < len(g.queue) && g.queue[n].at <= upTo {
		n++
	}
	free := g.queue[:n:n]
	g.queue = g.queue[n:]
	if len(g.queue) == 0 {
		g.queue = nil
	}
	g.mu.Unlock()
	for _, h := range free {
		h.fn()
	}
}

// Synced tells whether all up to a place is on the disk, and whether there is a log.
func (f *family) Synced(at journal.LSN) (synced, logs bool) {
	w := f.log()
	return w != nil && w.Durable() >= at, w != nil
}

// SyncLog waits until all there is is on the disk.
func (f *family) SyncLog() {
	if w := f.log(); w != nil {
		_ = w.Sync() // who waits asks again
	}
}

// log is the writer of the append-only file, nil if there is none.
func (f *family) log() *journal.Writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writer
}
