package journal

// With Always, event loops write the log themselves and start syncs in the background. The loop that ends a round writes
// the gathered batches and starts the sync; the loop that is notified of the sync's end releases the replies. Neither
// waits. With the writer's goroutine instead, three threads wake each other at each sync: with 50 clients, one SET took
// 0.36 switches between threads that way and takes 0.08 this way, with 4 to 14 % less processor time of the whole
// machine.
//
// The goroutine does everything else: cuts, failures, the first mark of a file, forced syncs, closing. Appending outside
// of a round also wakes it.

const (
	// slowMicros is the longest that a loop's write may take. A kernel with too much dirty data throttles the threads
	// that write, and a loop's clients must not wait for that. After a slower write, the goroutine writes for
	// asideMicros.
	slowMicros  = 1000
	asideMicros = 1_000_000
	// roundMax is how many bytes a loop writes at most: about 100 µs.
	roundMax = groupMax
	// besidePatience is how long a sync waits for expected batches, in multiples of the time that a sync takes. With 50
	// clients, 1 gives 41,000 SETs a second; 2, 4 and 8 give 48,000.
	besidePatience = 4
)

// looped reports whether event loops write the log.
func (w *writer) looped() bool {
	return w.o.Beside != nil && w.Policy() == Always && !w.suspended.Load() && w.State() == Running
}

// comesRound reports whether a loop will write what is appended now, so that the goroutine need not wake. The log's lock
// is held.
func (w *writer) comesRound() bool { return w.looped() && w.o.InRound() }

// plain reports whether the only work is to write the gathered batches and to sync them in the background.
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
// again if nothing else happens, 0 if it does not.
func (w *writer) Round() (again int64) {
	if !w.looped() || w.Written() >= w.log.End() {
		return 0
	}
	if !w.mu.TryLock() { // The holder may have looked already.
		w.wake()
		return 0
	}
	defer w.mu.Unlock()
	now := w.files.Monotonic()
	switch {
	case w.inFlight:
		return 0 // The end of that sync starts another round.
	case w.plain() && now >= w.slowTo && w.delay.Load() == 0 && w.Backlog() <= roundMax:
		again = w.round(now)
	}
	if again == 0 {
		w.wake()
	}
	return max(again, 0)
}

// Synced is called in the middle of a round, by the loop that finds WriterOptions.Beside's descriptor readable.
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

// round writes the gathered batches and begins a sync, if one is due. It returns in how many microseconds to look again:
// 0 for at once, -1 for not until the writer is woken.
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

// land takes over the result of a background sync, if it has ended.
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

// landed is the result of the sync in flight. It makes the next append outside of a round wake the goroutine again,
// since no loop may come to write that batch.
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
