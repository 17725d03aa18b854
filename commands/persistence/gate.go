package persistence

// The reply gate: a reply leaves when what it tells of is as safe as the user asked
// for. With appendfsync always that is when it is synced; otherwise at once, unless
// syncs take so long that more would be lost with the power than everysec allows.
// Event loops do not wait: what has to is kept here and posted back.
//
// When the log cannot be written, replies are not kept any longer: each is answered
// with an error instead. What it told of is in memory, and becomes safe when the disk
// is well again, with what else is in memory; if the server ends before, it is lost.
// Messages, which nobody asked for, stay until then.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine/journal"
)

type gate struct {
	on     *atomic.Bool                   // replies may be held: the keyspace's Gated
	writer atomic.Pointer[journal.Writer] // nil: nothing is held
	ends   func() bool                    // a log that cannot be written ends the server: nobody is answered
	also   func()                         // is called when more may be confirmed

	mu    sync.Mutex
	queue []held // by place
	// told is how many messages are in queue. releasing: somebody calls functions that
	// were in it, and looks again if again is set.
	told             int
	releasing, again bool
}

// held is a reply or a message.
type held struct {
	at    journal.LSN
	reply func(failed string)
	tell  func()
}

// toldMax is how many messages are kept. While the log is written few are; while it
// cannot be, keys that expire may have events. Those that are too many are dropped, as
// Redis drops what subscribers cannot take.
const toldMax = 100_000

// set has the gate go by a writer, nil for none.
func (g *gate) set(w *journal.Writer) {
	g.writer.Store(w)
	g.release()
}

// Confirmed is the place up to which replies may leave.
func (g *gate) Confirmed() journal.LSN {
	if w := g.writer.Load(); w != nil {
		return w.Confirmed()
	}
	return journal.MaxLSN
}

// Round writes the log at the end of an event loop's round, where it is for loops to do that.
func (g *gate) Round() (again int64) {
	if w := g.writer.Load(); w != nil {
		return w.Round()
	}
	return 0
}

// failure is the error for replies that cannot become safe for now, "" for none.
func (g *gate) failure() string {
	w := g.writer.Load()
	if w == nil {
		return ""
	}
	if err := w.Failure().Err; err != nil && !g.ends() {
		return misconf(err) + ". What this command did or saw is in memory, but may not be on the disk"
	}
	return ""
}

// misconf is the error for writes while the log cannot be written.
func misconf(err error) string {
	return "MISCONF Errors writing to the AOF file: " + journal.Reason(err)
}

// After calls fn when a place is confirmed, perhaps at once, or with an error when the
// log cannot be written. Of one place, and of later ones, functions are called in the
// order in which they came.
func (g *gate) After(at journal.LSN, fn func(failed string)) { g.add(held{at: at, reply: fn}) }

// Tell calls fn when a place is confirmed, in order with After.
func (g *gate) Tell(at journal.LSN, fn func()) { g.add(held{at: at, tell: fn}) }

func (g *gate) add(h held) {
	g.mu.Lock()
	if len(g.queue) == 0 && !g.releasing && h.at <= g.Confirmed() {
		g.mu.Unlock()
		h.run("")
		return
	}
	if h.tell != nil {
		if g.told >= toldMax {
			g.mu.Unlock()
			return
		}
		g.told++
	}
	i := len(g.queue)
	for i > 0 && g.queue[i-1].at > h.at {
		i--
	}
	g.queue = append(g.queue, held{})
	copy(g.queue[i+1:], g.queue[i:])
	g.queue[i] = h
	g.mu.Unlock()
	g.release() // it may have been confirmed since, or have failed
}

func (h *held) run(failed string) {
	if h.tell != nil {
		h.tell()
	} else {
		h.reply(failed)
	}
}

// release lets go what is confirmed, and all replies if none of the others can be.
func (g *gate) release() {
	if g.also != nil {
		defer g.also() // what it waits for may be told of when clients were
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.releasing {
		g.again = true
		return
	}
	g.releasing = true
	for again := true; again; again = g.again {
		g.again = false
		free, failed, rest := g.take()
		g.mu.Unlock()
		for i := range free {
			free[i].run("")
		}
		for i := range failed {
			failed[i].run(rest)
		}
		g.mu.Lock()
	}
	g.releasing = false
}

// take takes out of the queue what is confirmed, and the replies that fail, with why.
func (g *gate) take() (free, failed []held, why string) {
	w := g.writer.Load()
	g.on.Store(w != nil && w.Holds())
	why = g.failure() // before Confirmed: what became safe with the end of a failure has not failed
	upTo := g.Confirmed()
	n := 0
	for n < len(g.queue) && g.queue[n].at <= upTo {
		if g.queue[n].tell != nil {
			g.told--
		}
		n++
	}
	free, g.queue = g.queue[:n:n], g.queue[n:]
	if why != "" {
		var stay []held
		for _, h := range g.queue {
			if h.tell != nil {
				stay = append(stay, h)
			} else {
				failed = append(failed, h)
			}
		}
		g.queue = stay
	}
	if len(g.queue) == 0 {
		g.queue = nil
	}
	return free, failed, why
}

// Synced tells whether all up to a place is on the disk, and whether there is a log.
func (f *family) Synced(at journal.LSN) (synced, logs bool) {
	w := f.log()
	return w != nil && w.Durable() >= at, w != nil
}

// syncRetry is how often it is tried to sync a log that cannot be written.
const syncRetry = 100 * time.Millisecond

// SyncLog waits until all there is is on the disk, for as long as that is wanted. With appendfsync no the system decides
// when that is, and nobody is told.
func (f *family) SyncLog(wanted func() bool) {
	for wanted() {
		w := f.log()
		if w == nil {
			return
		}
		begins := w.State() == journal.Starting
		if f.p.policy() != journal.Never && w.Sync() == nil {
			if begins { // INFO does not call that rewrite one under way any more
				f.rewriteOver()
			}
			return
		}
		select {
		case <-f.stop:
			return
		case <-time.After(syncRetry):
		}
	}
}

// rewriteOver waits until no rewrite is under way, or the server ends.
func (f *family) rewriteOver() {
	f.mu.Lock()
	ended := f.rewriteEnd
	rewriting := f.rewriting
	f.mu.Unlock()
	if rewriting {
		select {
		case <-ended:
		case <-f.stop:
		}
	}
}

// log is the writer of the append-only file, nil if there is none.
func (f *family) log() *journal.Writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writer
}
