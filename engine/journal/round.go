package journal

// With Always, event loops write the log themselves and have it synced beside them: who ends a round writes what
// gathered and begins the sync, and the loop that is told of its end lets the replies go. Neither waits. In the hands of
// the writer's goroutine each sync costs three threads that wake each other: with 50 clients, one SET took 0.36 switches
// between threads that way and takes 0.08 this way, with 4 to 14 % less processor time of the whole machine.
//
// The goroutine does all that is not plain: cuts, failures, the first mark of a file, who waits for a sync, the end. It
// is also woken by who appends outside of a round.

const (
	// slowMicros is the longest that a write may take for loops to write. A system with too much to write keeps who
	// writes more waiting, and a loop's clients must not wait with it; then the goroutine writes for asideMicros.
	slowMicros  = 1000
	asideMicros = 1_000_000
	// roundMax is the most that a loop writes: some 100 µs.
	roundMax = groupMax
	// besidePatience is for how many syncs' time one waits for its company. With 50 clients, 1 gives 41,000 SETs a second,
	// 2, 4 and 8 give 48,000.
	besidePatience = 4
)

// looped says whether loops write.
func (w *writer) looped() bool {
	return w.o.Beside != nil && w.Policy() == Always && !w.suspended.Load() && w.State() == Running
}

// comesRound says whether what is appended now needs no goroutine, since a loop looks after it. The log's lock is held.
func (w *writer) comesRound() bool { return w.looped() && w.o.InRound() }

// plain says whether there is nothing to do but to write what gathered and to sync it beside.
func (w *writer) plain() bool {
	if !w.looped() || w.grounded || w.closing || w.outside != nil || w.opening != nil || !w.back.empty() ||
		w.Durable() < w.force || w.syncing && !w.inFlight {
		return false
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.front.cut == nil
}

// Round is called by an event loop at the end of each round. It returns in how many microseconds it wants to be called
// again where nothing else happens, 0 for not at all.
func (w *writer) Round() (again int64) {
	if !w.looped() || w.Written() >= w.log.End() {
		return 0
	}
	if !w.mu.TryLock() { // Whoever has it may have looked already.
		w.wake()
		return 0
	}
	defer w.mu.Unlock()
	now := w.files.Monotonic()
	switch {
	case w.inFlight:
		return 0 // Its end is another round's beginning.
	case w.plain() && now >= w.slowTo && w.delay.Load() == 0 && w.Backlog() <= roundMax:
		again = w.round(now)
	}
	if again == 0 {
		w.wake()
	}
	return max(again, 0)
}

// Synced is called by the loop that finds WriterOptions.Beside's descriptor readable, in the middle of a round.
func (w *writer) Synced() {
	if !w.mu.TryLock() {
		w.wake()
		return
	}
	defer w.mu.Unlock()
	if w.land(); !w.plain() {
		w.wake()
	}
}

// round writes what gathered and begins to sync it, where that is due. It says in how many microseconds to look again:
// 0 for at once, -1 for when somebody says so.
func (w *writer) round(now int64) (wait int64) {
	if w.inFlight {
		return -1
	}
	if now < w.gatherTo && w.alone() {
		return w.gatherTo - now
	}
	w.taking = 0
	switch {
	case w.take(now):
		w.taking = w.back.batches
		if !w.write(now) {
			return 0
		}
		if w.files.Monotonic()-now > slowMicros {
			w.slowTo = now + asideMicros
		}
	case w.safe == w.size && w.safeLSN >= w.Written():
		return w.untilWrite(now, -1)
	}
	if !w.o.Beside.Begin(w.file) {
		w.grounded = true
		return 0
	}
	w.flight = syncDone{size: w.size, lsn: w.Written()}
	w.inFlight = true
	w.beginSync(now)
	return -1
}

// land takes over a sync that ran beside, if it has ended.
func (w *writer) land() {
	if !w.inFlight {
		return
	}
	if ended, err := w.o.Beside.Ended(); ended {
		w.syncTime += (w.files.Monotonic() - w.lastSync - w.syncTime) / 8
		w.endSync(w.landed(err))
		w.expect(w.taking, besidePatience*w.syncTime)
	}
}

// landed is what the sync in flight came to. Who appends outside of a round wakes the goroutine again: nobody else may
// come to look.
func (w *writer) landed(err error) syncDone {
	w.inFlight = false
	if err == nil {
		err = w.seen(w.file, w.name, w.flight.size)
	}
	w.log.mu.Lock()
	w.wakeAt = 1
	w.log.mu.Unlock()
	w.flight.err = err
	return w.flight
}
